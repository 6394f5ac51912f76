// SPDX-License-Identifier: Apache-2.0
#include "memory/base/oom_callbacks.hpp"

#include <algorithm>
#include <new>

#include "core/interrupt.hpp"
#include "core/lock_guard.hpp"
#include "core/never_destroyed.hpp"
#include "memory/base/using_block.hpp"

namespace isthmus {
namespace {

// The callback that this thread is running; null: none.
thread_local const OomCallback* current_callback = nullptr;

}  // namespace

// The current resource may be the one that has no memory left.
std::uint64_t OomCallback::call_function(const isthmus_oom_request_t& request) const noexcept {
  const WithoutCurrentResource without_current;
  current_callback = this;
  const auto bytes = function_(user_.object(), &request);
  current_callback = nullptr;
  return bytes;
}

std::uint64_t OomCallback::call(const isthmus_oom_request_t& request) noexcept {
  {
    const LockGuard hold{lock_};
    if (closed_) {
      return 0;
    }
    ++running_;
  }
  const auto bytes = call_function(request);
  const LockGuard hold{lock_};
  --running_;
  ended_.notify_all();
  return bytes;
}

void OomCallback::close(bool waits) noexcept {
  {
    const LockGuard hold{lock_};
    closed_ = true;
  }
  if (waits && current_callback == nullptr) {
    static_cast<void>(wait_in_slices(
        std::nullopt, [this](const os::Deadline& slice) { return wait_for_calls(slice); }));
  }
}

bool OomCallback::wait_for_calls(const os::Deadline& until) noexcept {
  const LockGuard hold{lock_};
  while (running_ != 0 && ended_.wait_until(lock_, until)) {
  }
  return running_ == 0;
}

void OomCallbacks::add(Ref<OomCallback> callback) {
  const LockGuard hold{lock_};
  all_.push_back({last_number_ + 1, std::move(callback)});
  ++last_number_;
}

void OomCallbacks::remove(OomCallback& callback, bool waits) noexcept {
  Ref<OomCallback> removed;  // outlives the lock, since its release may release the user's object
  {
    const LockGuard hold{lock_};
    const auto found = std::find_if(all_.begin(), all_.end(), [&](const Entry& each) {
      return each.callback.get() == &callback;
    });
    if (found != all_.end()) {
      removed = std::move(found->callback);
      all_.erase(found);
    }
  }
  callback.close(waits);
}

std::uint64_t OomCallbacks::newest() noexcept {
  const LockGuard hold{lock_};
  return last_number_;
}

OomCallbacks::Entry OomCallbacks::next(std::uint64_t last, std::uint64_t newest) noexcept {
  const LockGuard hold{lock_};
  const auto found = std::upper_bound(
      all_.begin(), all_.end(), last,
      [](std::uint64_t number, const Entry& each) { return number < each.number; });
  return found == all_.end() || found->number > newest ? Entry{} : *found;
}

OomCallbacks::Outcome OomCallbacks::call_all(const isthmus_oom_request_t& request) noexcept {
  Outcome outcome;
  if (current_callback != nullptr) {
    return outcome;
  }
  const auto newest_now = newest();  // excludes callbacks that a callback adds
  for (auto each = next(0, newest_now); each.callback; each = next(each.number, newest_now)) {
    outcome.bytes += each.callback->call(request);
    ++outcome.called;
  }
  return outcome;
}

OomCallbacks& process_oom_callbacks() noexcept {
  static NeverDestroyed<OomCallbacks> only;
  return *only;
}

isthmus_oom_request_t request_for(Device& device, UsmKind kind, std::size_t nbytes) noexcept {
  isthmus_oom_request_t request{};
  request.struct_size = sizeof request;
  request.device = reinterpret_cast<isthmus_device_t*>(&device);
  request.kind = kind;
  request.nbytes = nbytes;
  return request;
}

}  // namespace isthmus
