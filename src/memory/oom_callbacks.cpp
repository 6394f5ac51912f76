// SPDX-License-Identifier: Apache-2.0
#include "memory/oom_callbacks.hpp"

#include <algorithm>
#include <new>

#include "core/interrupt.hpp"
#include "core/never_destroyed.hpp"
#include "memory/oom_stages.hpp"
#include "memory/other_pools.hpp"

namespace isthmus {
namespace {

// The callback that this thread is running; null: none.
thread_local const OomCallback* inside = nullptr;

bool stands_on_pool(MemoryResource* resource) noexcept try {
  std::vector<MemoryResource*> bases;
  if (resource != nullptr) {
    resource->collect_bases(bases);
  }
  return std::any_of(bases.begin(), bases.end(),
                     [](const MemoryResource* each) { return each->as_pool() != nullptr; });
} catch (const std::bad_alloc&) {
  return true;  // unknown
}

}  // namespace

std::uint64_t OomCallback::ask(const isthmus_reclaim_request_t& request) noexcept {
  {
    const std::lock_guard hold{lock_};
    if (closed_) {
      return 0;
    }
    ++running_;
  }
  inside = this;
  const auto bytes = function_(user_.object(), &request);
  inside = nullptr;
  const std::lock_guard hold{lock_};
  --running_;
  ended_.notify_all();
  return bytes;
}

void OomCallback::close(bool waits) noexcept {
  {
    const std::lock_guard hold{lock_};
    closed_ = true;
  }
  if (waits && inside == nullptr) {
    static_cast<void>(wait_in_slices(
        std::nullopt, [this](const os::Deadline& slice) { return calls_end(slice); }));
  }
}

bool OomCallback::calls_end(const os::Deadline& until) noexcept {
  const auto is_over = [this] { return running_ == 0; };
  std::unique_lock hold{lock_};
  if (until) {
    return ended_.wait_until(hold, *until, is_over);
  }
  ended_.wait(hold, is_over);
  return true;
}

void OomCallbacks::add(Ref<OomCallback> made) {
  const std::lock_guard hold{lock_};
  all_.push_back({last_number_ + 1, std::move(made)});
  ++last_number_;
}

void OomCallbacks::remove(OomCallback& gone, bool waits) noexcept {
  Ref<OomCallback> last;  // dropped after the lock: it releases the user's object
  {
    const std::lock_guard hold{lock_};
    const auto found = std::find_if(all_.begin(), all_.end(),
                                    [&](const Entry& each) { return each.which.get() == &gone; });
    if (found != all_.end()) {
      last = std::move(found->which);
      all_.erase(found);
    }
  }
  gone.close(waits);
}

std::uint64_t OomCallbacks::newest() noexcept {
  const std::lock_guard hold{lock_};
  return last_number_;
}

OomCallbacks::Entry OomCallbacks::next(std::uint64_t last, std::uint64_t newest) noexcept {
  const std::lock_guard hold{lock_};
  const auto found = std::upper_bound(
      all_.begin(), all_.end(), last,
      [](std::uint64_t number, const Entry& each) { return number < each.number; });
  return found == all_.end() || found->number > newest ? Entry{} : *found;
}

OomCallbacks::Outcome OomCallbacks::ask(const isthmus_reclaim_request_t& request) noexcept {
  Outcome seen;
  if (inside != nullptr) {
    return seen;
  }
  const auto newest_now = newest();  // callbacks that a callback adds are called the next time
  for (auto each = next(0, newest_now); each.which; each = next(each.number, newest_now)) {
    seen.bytes += each.which->ask(request);
    ++seen.asked;
  }
  return seen;
}

OomCallbacks& process_reclaimers() noexcept {
  static NeverDestroyed<OomCallbacks> only;
  return *only;
}

isthmus_reclaim_request_t request_for(Device& device, UsmKind kind, std::size_t nbytes) noexcept {
  isthmus_reclaim_request_t request{};
  request.struct_size = sizeof request;
  request.device = reinterpret_cast<isthmus_device_t*>(&device);
  request.kind = kind;
  request.nbytes = nbytes;
  return request;
}

bool may_be_had_later(const Error& refusal, Device& device, const AllocationRequest& request,
                      MemoryResource* resource) noexcept {
  return refusal.code() == ISTHMUS_ERROR_OUT_OF_MEMORY && no_wait == 0 && !in_continuation() &&
         request.nbytes <= device.properties().max_allocation_bytes && !stands_on_pool(resource);
}

bool reclaimed_for(const Error& refusal, std::uint64_t refusals, Device& device,
                   const AllocationRequest& request, MemoryResource* resource) noexcept {
  const auto nbytes = driver_refusals == refusals
                          ? request.nbytes
                          : std::max<std::size_t>(request.nbytes, driver_refused_bytes);
  return may_be_had_later(refusal, device, request, resource) &&
         process_reclaimers().ask(request_for(device, request.kind, nbytes)).bytes != 0;
}

}  // namespace isthmus
