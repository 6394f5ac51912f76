#include "memory/allocation.hpp"

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

result<ref<allocation>> allocation::adopt(queue& on, const facts& what, owner keep) {
  auto made = make_ref<allocation>(on, what);
  process_registry().add(*made);
  made->origin_ = origin::foreign;
  made->keep_ = std::move(keep);
  return made;
}

result<std::vector<ref<event>>> allocation::still_running() {
  auto running = uses_.pending();
  // Work of the caller's own may use the memory on a queue whose handle he has.
  if (on_->lent()) {
    auto asked = on_->unfinished(running);
    if (!asked && asked.failure().code() != ISTHMUS_ERROR_DEVICE_LOST) {
      return asked.take_error();
    }
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
    reclaim_after(*this, *std::move(running));
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
  process_registry().remove(*this);
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
