// SPDX-License-Identifier: Apache-2.0
// Releases the memory of an allocation: at once, in the order of a queue, or after its uses have
// completed.

#include "core/undo.hpp"
#include "memory/base/deferred_release.hpp"
#include "memory/base/free_listener.hpp"
#include "memory/base/provider.hpp"
#include "memory/pool/page_map.hpp"
#include "memory/pool/pool.hpp"
#include "memory/pool/pool_page.hpp"
#include "memory/records/allocation.hpp"
#include "memory/records/registry.hpp"
#include "os/process.hpp"

namespace isthmus {
namespace {

// The counter belongs to the pool that the memory is returned to, or to the device if the memory is
// returned to the driver.
void count_pending_release(Pool* pool, Device& device, UsmKind kind, std::int64_t nbytes) noexcept {
  if (pool != nullptr) {
    pool->count_pending(nbytes);
  } else {
    device.count_pending_release(kind, nbytes);
  }
}

}  // namespace

Result<void> Allocation::deallocate(const void* pointer, Queue* after) noexcept {
  const auto* const base = facts_.base;
  if (base != pointer) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "{} lies inside the allocation at {}: free the pointer that was allocated", pointer,
                base);
  }
  if (!drop_pointer(after)) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "{} was freed before, or belongs to a buffer: free the buffer", pointer);
  }
  return {};
}

void Allocation::return_memory(const Facts& facts, Queue& queue, MemoryResource* resource,
                               Queue* after) noexcept {
  if (resource != nullptr && resource->as_pool() != nullptr) {
    resource->as_pool()->recycle(facts.base, after);
  } else if (resource != nullptr) {
    static_cast<void>(resource->deallocate(facts.base, facts.nbytes, after));
  } else {
    provider_free(queue.context(), queue.device(), facts.kind, facts.base, facts.nbytes);
  }
}

void Allocation::notify_freed() noexcept {
  if (origin_ == Origin::internal && resource_) {
    isthmus::notify_freed(*resource_, facts_.base, facts_.nbytes);
  }
}

// A lost device has no unfinished work.
Result<void> Allocation::unfinished_on(Queue& queue, std::vector<Ref<Event>>& out) {
  auto result = queue.unfinished(out);
  const bool is_lost = !result && result.failure().code() == ISTHMUS_ERROR_DEVICE_LOST;
  return is_lost ? Result<void>{} : std::move(result);
}

Result<std::vector<Ref<Event>>> Allocation::running_events() {
  const auto begin = address(facts_.base) - address(start_of_uses());
  auto running = uses().pending({begin, begin + facts_.nbytes});
  ISTHMUS_TRY(unfinished_on_exported(nullptr, running));
  if (freed_after_) {
    ISTHMUS_TRY(unfinished_on(*freed_after_, running));
  }
  return running;
}

// If all work that may still use the memory is on one queue, the memory can be freed in the order
// of that queue: later work there may reuse it at once, and the pool delays its reuse on other
// queues. This excludes memory that the host can access, since the host is not ordered by a queue.
// It also excludes a queue whose work is only recorded (graph capture), since that work may run
// repeatedly.
Ref<Queue> Allocation::ordering_queue() noexcept {
  if (!is_block_ || host_can_touch() || !resource_->orders_frees() || views_.any_exported()) {
    return {};
  }
  const auto serial = uses_.only_queue();
  auto queue = serial ? find_queue(*serial) : Ref<Queue>{};
  const auto is_other = [&](const Ref<Queue>& candidate) {
    return candidate && candidate.get() != queue.get();
  };
  if (!queue || (queue_->is_exported() && is_other(queue_)) || is_other(freed_after_)) {
    return {};
  }
  // Excludes a queue with operations that the host still defers. If its handle were exported later,
  // external work of the memory's next owner could run before them.
  const bool is_in_order = queue->is_in_order() && !queue->has_deferred_operations();
  return is_in_order && !queue->check_allocation() ? queue : Ref<Queue>{};
}

// Serial number 0 means that no known operation is pending, so that any queue is suitable.
Ref<Queue> Allocation::find_queue(std::uint64_t serial) noexcept {
  if (serial == 0) {
    return freed_after_ ? freed_after_ : queue_;
  }
  if (queue_->serial() == serial) {
    return queue_;
  }
  if (freed_after_ && freed_after_->serial() == serial) {
    return freed_after_;
  }
  auto* const pool = resource_->as_pool();
  return pool != nullptr ? pool->fences().find(serial) : Ref<Queue>{};
}

bool Allocation::release_after_uses() {
  auto running = running_events();
  if (running && running->empty()) {
    destroy();
    return true;
  }
  notify_freed();
  if (!running) {
    retry_release(*this);  // whether work uses the memory cannot be determined now
    return false;
  }
  unused_ = true;  // before another thread can release it
  begin_pending_release();
  Undo rollback{[&] {
    end_pending_release();
    unused_ = false;
  }};
  release_after(*this, *running);
  rollback.dismiss();
  return false;
}

void Allocation::release_last() noexcept {
  if (references() != 1 || os::drivers_unavailable() || in_continuation() || !end_unused_block()) {
    release();
  }
}

// Look-ups in the registry take the lock under which `remove_if` checks that the caller's reference
// is the only one. After a successful check the block is no longer live, so no look-up finds it.
bool Allocation::end_unused_block() noexcept {
  auto* const pool = resource_ ? resource_->as_pool() : nullptr;
  auto* const page = pool != nullptr ? process_page_map.find(facts_.base) : nullptr;
  const bool ended = page != nullptr && never_used() && inherits_in_order() &&
                     process_registry().remove_if(*this, [&] {
                       const bool last = references() == 1 && never_used() && inherits_in_order();
                       if (last) {
                         pool->end_block(*page, facts_.base);
                       }
                       return last;
                     });
  if (ended) {
    const bool in_order = uses_.inherits() || !queue_->is_exported();
    pool->recycle_ended(*page, facts_.base, in_order ? queue_.get() : nullptr);
    delete this;
  }
  return ended;
}

void Allocation::on_last_release() noexcept {
  // In a forked child the memory still belongs to the parent process. At process exit the memory is
  // released with the process.
  if (os::drivers_unavailable()) {
    return;
  }
  if (origin_ == Origin::unregistered) {
    delete this;
    return;
  }
  if (is_registered()) {
    Registry::mark_dying(*this, origin_ == Origin::foreign);
  }
  if (needs_library_thread()) {
    notify_freed();
    begin_pending_release();
    defer_release(*this);
  } else {
    release_or_defer();
  }
}

void Allocation::release_now() noexcept {
  if (!is_pending_) {
    release_or_defer();
    return;
  }
  // Copies, since `release_or_defer` may delete this object. The references keep the pool and the
  // device alive.
  const auto resource = resource_;
  const auto outer = outer_;
  const auto queue = queue_;
  auto* const below = pool_below();
  auto& owning_device = device();
  const auto [kind, nbytes] = std::pair{facts_.kind, pending_bytes()};
  is_pending_ = false;
  if (release_or_defer() && below == nullptr) {
    owning_device.count_released(kind, nbytes);
  } else {
    count_pending_release(below, owning_device, kind, -nbytes);
  }
}

Ref<Queue> Allocation::sole_queue() noexcept try {
  if (unused_ || outer_ || freed_after_ || !uses_.is_known_idle() || ordering_queue()) {
    return {};
  }
  const auto users = exported_queues();
  return users.size() == 1 ? users.front() : Ref<Queue>{};
} catch (const std::bad_alloc&) {
  return {};
}

bool Allocation::is_released_on_demand() noexcept {
  return !unused_ &&
         (is_queried_on_demand() || (freed_after_ && freed_after_->traits().is_queried_on_demand));
}

bool Allocation::is_queried_on_demand() noexcept {
  return outer_ ? outer_->is_queried_on_demand()
                : queue_->traits().is_queried_on_demand || views_.any_queried_on_demand();
}

void Allocation::release_idle() noexcept {
  unused_ = true;
  release_now();
}

void Allocation::begin_pending_release() noexcept {
  const bool is_returned = origin_ == Origin::internal && !outer_;
  if (is_returned && !std::exchange(is_pending_, true)) {
    count_pending_release(pool_below(), device(), facts_.kind, pending_bytes());
  }
}

void Allocation::end_pending_release() noexcept {
  if (std::exchange(is_pending_, false)) {
    count_pending_release(pool_below(), device(), facts_.kind, -pending_bytes());
  }
}

Pool* Allocation::pool_below() const noexcept {
  return resource_ ? resource_->resource_of(facts_.base, facts_.nbytes).as_pool() : nullptr;
}

bool Allocation::release_or_defer() noexcept {
  if (unused_ || is_idle()) {
    destroy();
    return true;
  }
  if (const auto queue = ordering_queue()) {
    destroy_after_queue(*queue);
    return true;
  }
  try {
    return release_after_uses();
  } catch (const std::bad_alloc&) {
    notify_freed();
    retry_release(*this);  // no memory for the list of events to wait for
    return false;
  }
}

// The record is removed from the registry only here, so that a double free is detected until then.
void Allocation::destroy(Queue* after) noexcept {
  if (origin_ == Origin::internal || !outer_) {
    process_registry().remove(*this);
  }
  if (origin_ == Origin::internal) {
    return_memory(facts_, *queue_, resource_.get(), after);
  }
  delete this;
}

void Allocation::destroy() noexcept { destroy(queue_->is_exported() ? nullptr : queue_.get()); }

// The queue runs operations of the block's next owner after the pending work. The next owner's
// record also inherits that work (`Allocation::inherit`).
void Allocation::destroy_after_queue(Queue& queue) noexcept {
  if (auto* const pool = resource_->as_pool()) {
    pool->note_free_after_work();
  }
  destroy(&queue);
}

}  // namespace isthmus
