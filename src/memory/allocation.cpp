#include "memory/allocation.hpp"

#include <algorithm>
#include <iterator>
#include <mutex>

#include "backend/queue.hpp"
#include "core/sizes.hpp"
#include "memory/provider.hpp"
#include "memory/reaper.hpp"
#include "memory/registry.hpp"
#include "os/process.hpp"

namespace isthmus {
namespace {

result<void*> take(queue& on, const allocation_request& request, memory_resource* from) {
  if (from != nullptr) {
    return from->allocate(request.nbytes, request.alignment, on);
  }
  return provider_allocate(on.home(), on.where(), request);
}

void give_back(queue& on, const allocation_request& request, memory_resource* from,
               void* pointer) noexcept {
  if (from != nullptr) {
    from->deallocate(pointer, request.nbytes);
  } else {
    provider_deallocate(on.home(), on.where(), request.kind, pointer, request.nbytes);
  }
}

}  // namespace

allocation::allocation(queue& on, const facts& what) : what_{what}, on_{&on} {}

allocation::~allocation() = default;

context& allocation::home() const noexcept { return on_->home(); }
device& allocation::where() const noexcept { return on_->where(); }

bool allocation::contains(const void* pointer) const noexcept {
  return address(pointer) - address(what_.base) < what_.nbytes;
}

result<ref<allocation>> allocation::create(queue& on, const allocation_request& request,
                                           memory_resource* from) {
  auto pointer = take(on, request, from);
  if (!pointer) {
    return pointer.take_error();
  }
  const auto alignment =
      request.alignment != 0 ? request.alignment : on.where().properties().base_alignment;
  try {
    auto made = make_ref<allocation>(on, facts{*pointer, request.nbytes, alignment, request.kind});
    process_registry().add(*made);
    made->origin_ = origin::ours;
    made->from_ = ref<memory_resource>{from};
    return made;
  } catch (const std::bad_alloc&) {
    give_back(on, request, from, *pointer);
    throw;
  }
}

result<ref<allocation>> allocation::adopt(queue& on, const facts& what, owner keep,
                                          ref<allocation> within) {
  auto made = make_ref<allocation>(on, what);
  if (within) {
    within->also_on(on);
    made->within_ = std::move(within);  // a pointer is looked up as that one's
  } else {
    process_registry().add(*made);
  }
  made->origin_ = origin::foreign;
  made->keep_ = std::move(keep);
  return made;
}

void allocation::also_on(queue& other) {
  if (within_) {
    within_->also_on(other);
  }
  if (other.key() == on_->key()) {
    return;
  }
  // One that nobody else has any more, and whose handle nobody has, gets no more work.
  const auto serves_no_more = [&other](const ref<queue>& each) {
    return each->key() == other.key() || (each->unique() && !each->lent() && each->quiet());
  };
  std::vector<ref<queue>> left;
  const std::lock_guard hold{others_lock_};
  left.reserve(others_.size() + 1);
  std::remove_copy_if(others_.begin(), others_.end(), std::back_inserter(left), serves_no_more);
  left.emplace_back(&other);
  left.swap(others_);
  has_others_.store(true, std::memory_order_release);
}

std::vector<ref<queue>> allocation::lent_queues() {
  std::vector<ref<queue>> found;
  if (on_->lent()) {
    found.push_back(on_);
  }
  if (has_others_.load(std::memory_order_acquire)) {
    const std::lock_guard hold{others_lock_};
    std::copy_if(others_.begin(), others_.end(), std::back_inserter(found),
                 [](const ref<queue>& each) { return each->lent(); });
  }
  return found;
}

bool allocation::lent() noexcept {
  if (on_->lent() || (within_ && within_->lent())) {
    return true;
  }
  if (!has_others_.load(std::memory_order_acquire)) {
    return false;
  }
  const std::lock_guard hold{others_lock_};
  return std::any_of(others_.begin(), others_.end(),
                     [](const ref<queue>& each) { return each->lent(); });
}

result<void> allocation::unfinished_on_lent(const queue* but, std::vector<ref<event>>& out) {
  for (const auto& each : lent_queues()) {
    if (each.get() != but) {
      ISTHMUS_TRY(each->unfinished(out));
    }
  }
  return within_ ? within_->unfinished_on_lent(but, out) : result<void>{};
}

result<std::vector<ref<event>>> allocation::still_running() {
  auto running = uses().pending();
  auto asked = unfinished_on_lent(nullptr, running);
  if (!asked && asked.failure().code() != ISTHMUS_ERROR_DEVICE_LOST) {
    return asked.take_error();
  }
  return running;
}

void allocation::retire() {
  auto running = still_running();
  if (!running) {
    return;  // somebody may still use it and nobody can tell: lost memory, not lost data
  }
  if (running->empty()) {
    reclaim();
  } else {
    unused_ = true;  // before it is handed over
    reclaim_after(*this, *running);
  }
}

void allocation::last_reference_gone() noexcept {
  // What a child frees stays the parent's, and what is freed at the very end goes with the process.
  if (os::drivers_are_gone()) {
    return;
  }
  if (origin_ == origin::unregistered) {
    delete this;
    return;
  }
  if (!within_) {
    process_registry().remove(*this);
  }
  if (in_continuation()) {
    retire_later(*this);  // which may have to ask a driver
  } else {
    let_go();
  }
}

void allocation::let_go() noexcept {
  if (unused_) {
    reclaim();
    return;
  }
  try {
    retire();
  } catch (const std::bad_alloc&) {
    // No memory for a list of what to wait for: as above.
  }
}

void allocation::reclaim() noexcept {
  if (origin_ == origin::ours) {
    give_back(*on_, {what_.kind, what_.nbytes, what_.alignment}, from_.get(), what_.base);
  }
  delete this;
}

}  // namespace isthmus
