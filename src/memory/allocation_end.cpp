// SPDX-License-Identifier: Apache-2.0
// How the memory of an allocation is released: at once, in the order of a queue, or after its uses
// have completed.

#include "core/undo.hpp"
#include "memory/allocation.hpp"
#include "memory/deferred_release.hpp"
#include "memory/free_listener.hpp"
#include "memory/page_map.hpp"
#include "memory/pool.hpp"
#include "memory/pool_page.hpp"
#include "memory/provider.hpp"
#include "memory/registry.hpp"
#include "os/process.hpp"

namespace isthmus {
namespace {

// Counted by the pool that the memory is returned to, or by the device if that is the driver.
void count_late(Pool* pool, Device& device, UsmKind kind, std::int64_t nbytes) noexcept {
  if (pool != nullptr) {
    pool->count_late(nbytes);
  } else {
    device.count_late(kind, nbytes);
  }
}

}  // namespace

void Allocation::return_memory(const Facts& facts, Queue& queue, MemoryResource* resource,
                               Queue* behind) noexcept {
  if (resource != nullptr && resource->as_pool() != nullptr) {
    resource->as_pool()->recycle(facts.base, behind);
  } else if (resource != nullptr) {
    static_cast<void>(resource->deallocate(facts.base, facts.nbytes, behind));
  } else {
    provider_deallocate(queue.context(), queue.device(), facts.kind, facts.base, facts.nbytes);
  }
}

void Allocation::notify_freed() noexcept {
  if (origin_ == Origin::ours && resource_) {
    isthmus::notify_freed(*resource_, what_.base, what_.nbytes);
  }
}

// A lost device has no unfinished work.
Result<void> Allocation::unfinished_on(Queue& queue, std::vector<Ref<Event>>& out) {
  auto asked = queue.unfinished(out);
  const bool is_lost = !asked && asked.failure().code() == ISTHMUS_ERROR_DEVICE_LOST;
  return is_lost ? Result<void>{} : std::move(asked);
}

Result<std::vector<Ref<Event>>> Allocation::still_running() {
  const auto begin = address(what_.base) - address(start_of_uses());
  auto running = uses().pending({begin, begin + what_.nbytes});
  ISTHMUS_TRY(unfinished_on_lent(nullptr, running));
  if (freed_behind_) {
    ISTHMUS_TRY(unfinished_on(*freed_behind_, running));
  }
  return running;
}

// If all work that may still use the memory is on one queue, the memory can be freed in the order
// of that queue: later work there may reuse it at once, and the pool delays its reuse on other
// queues. This excludes memory that the host can access, since the host is not ordered by a queue.
// It also excludes a queue whose work is only recorded (graph capture), since that work may run
// repeatedly.
Ref<Queue> Allocation::order_of_free() noexcept {
  if (!is_block_ || host_can_touch() || !resource_->orders_frees() || views_.any_lent()) {
    return {};
  }
  const auto serial = uses_.only_queue();
  auto behind = serial ? queue_known_as(*serial) : Ref<Queue>{};
  const auto is_other = [&](const Ref<Queue>& one) { return one && one.get() != behind.get(); };
  if (!behind || (queue_->lent() && is_other(queue_)) || is_other(freed_behind_)) {
    return {};
  }
  // Operations that are held back on the host now could be overtaken later, by external work of the
  // next user of the memory, once the queue's handle is exported.
  const bool is_in_order = behind->is_in_order() && !behind->has_deferred_operations();
  return is_in_order && !behind->refuse_allocation() ? behind : Ref<Queue>{};
}

// Serial number 0 stands for any queue, as no known operation is pending.
Ref<Queue> Allocation::queue_known_as(std::uint64_t serial) noexcept {
  if (serial == 0) {
    return freed_behind_ ? freed_behind_ : queue_;
  }
  if (queue_->serial() == serial) {
    return queue_;
  }
  if (freed_behind_ && freed_behind_->serial() == serial) {
    return freed_behind_;
  }
  auto* const to = resource_->as_pool();
  return to != nullptr ? to->slots().find(serial) : Ref<Queue>{};
}

bool Allocation::retire() {
  auto running = still_running();
  if (running && running->empty()) {
    reclaim();
    return true;
  }
  notify_freed();
  if (!running) {
    retry_release(*this);  // it may still be in use, which cannot be determined now
    return false;
  }
  unused_ = true;  // before another thread can release it
  begin_to_be_late();
  Undo told{[&] {
    end_being_late();
    unused_ = false;
  }};
  reclaim_after(*this, *running);
  told.dismiss();
  return false;
}

void Allocation::release_last() noexcept {
  if (references() != 1 || os::drivers_are_gone() || in_continuation() || !end_unused_block()) {
    release();
  }
}

// Look-ups in the registry take the lock under which `remove_if` checks that the caller's reference
// is the only one. After a successful check the block is no longer live, so no look-up finds it.
bool Allocation::end_unused_block() noexcept {
  auto* const from = resource_ ? resource_->as_pool() : nullptr;
  auto* const page = from != nullptr ? process_page_map.find(what_.base) : nullptr;
  const bool ended = page != nullptr && never_used() && inherits_in_order() &&
                     process_registry().remove_if(*this, [&] {
                       const bool last = references() == 1 && never_used() && inherits_in_order();
                       if (last) {
                         from->end_block(*page, what_.base);
                       }
                       return last;
                     });
  if (ended) {
    const bool in_order = uses_.inherits() || !queue_->lent();
    from->recycle_ended(*page, what_.base, in_order ? queue_.get() : nullptr);
    delete this;
  }
  return ended;
}

void Allocation::last_reference_gone() noexcept {
  // Memory freed in a forked child still belongs to the parent. Memory freed at the end of the
  // process is freed with it.
  if (os::drivers_are_gone()) {
    return;
  }
  if (origin_ == Origin::unregistered) {
    delete this;
    return;
  }
  if (entry_ != nullptr) {
    Registry::mark_dying(*this);
  }
  if (is_asked_elsewhere()) {
    notify_freed();
    begin_to_be_late();
    defer_release(*this);
  } else {
    end();
  }
}

void Allocation::release_now() noexcept {
  if (!is_late_) {
    end();
    return;
  }
  // Copied, since `end` may delete this object. They keep the pool and the device alive.
  const auto from = resource_;
  const auto within = within_;
  const auto queue = queue_;
  auto* const below = pool_below();
  auto& on = device();
  const auto [kind, nbytes] = std::pair{what_.kind, late_bytes()};
  is_late_ = false;
  if (end() && below == nullptr) {
    on.count_returned(kind, nbytes);
  } else {
    count_late(below, on, kind, -nbytes);
  }
}

Ref<Queue> Allocation::sole_queue() noexcept try {
  if (unused_ || within_ || freed_behind_ || !uses_.quiet() || order_of_free()) {
    return {};
  }
  const auto users = lent_queues();
  return users.size() == 1 ? users.front() : Ref<Queue>{};
} catch (const std::bad_alloc&) {
  return {};
}

bool Allocation::is_released_on_demand() noexcept {
  return !unused_ &&
         (is_of_queue_on_demand() || (freed_behind_ && freed_behind_->is_asked_on_demand()));
}

bool Allocation::is_of_queue_on_demand() noexcept {
  return within_ ? within_->is_of_queue_on_demand()
                 : queue_->is_asked_on_demand() || views_.any_asked_on_demand();
}

void Allocation::release_idle() noexcept {
  unused_ = true;
  release_now();
}

void Allocation::begin_to_be_late() noexcept {
  const bool goes_back = origin_ == Origin::ours && !within_;
  if (goes_back && !std::exchange(is_late_, true)) {
    count_late(pool_below(), device(), what_.kind, late_bytes());
  }
}

void Allocation::end_being_late() noexcept {
  if (std::exchange(is_late_, false)) {
    count_late(pool_below(), device(), what_.kind, -late_bytes());
  }
}

Pool* Allocation::pool_below() const noexcept {
  return resource_ ? resource_->giver_of(what_.base, what_.nbytes).as_pool() : nullptr;
}

bool Allocation::end() noexcept {
  if (unused_ || nothing_runs()) {
    reclaim();
    return true;
  }
  if (const auto behind = order_of_free()) {
    reclaim_after_queue(*behind);
    return true;
  }
  try {
    return retire();
  } catch (const std::bad_alloc&) {
    notify_freed();
    retry_release(*this);  // no memory for the list of events to wait for
    return false;
  }
}

// The record stays in the registry until here, so that a double free is detected meanwhile.
void Allocation::reclaim(Queue* behind) noexcept {
  if (origin_ == Origin::ours || !within_) {
    process_registry().remove(*this);
  }
  if (origin_ == Origin::ours) {
    return_memory(what_, *queue_, resource_.get(), behind);
  }
  delete this;
}

void Allocation::reclaim() noexcept { reclaim(queue_->lent() ? nullptr : queue_.get()); }

// The next user of the block on this queue is ordered after that work, also through its record,
// which inherits the work (`Allocation::inherit`).
void Allocation::reclaim_after_queue(Queue& queue) noexcept {
  if (auto* const to = resource_->as_pool()) {
    to->note_free_after_work();
  }
  reclaim(&queue);
}

}  // namespace isthmus
