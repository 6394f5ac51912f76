// SPDX-License-Identifier: Apache-2.0
#include "memory/records/allocation.hpp"

#include <atomic>

#include "backend/queue.hpp"
#include "core/sizes.hpp"
#include "core/undo.hpp"
#include "memory/base/deferred_release.hpp"
#include "memory/base/freed_before.hpp"
#include "memory/pool/page_map.hpp"
#include "memory/pool/pool.hpp"
#include "memory/records/registry.hpp"

namespace isthmus {
namespace {

constinit std::atomic<bool> any_nested_allocation{false};

// For a pool: frees its block through the block's record.
std::optional<Result<void>> free_recorded(const void* block, void* pointer, Queue* after) noexcept {
  if (auto record = process_registry().find_block(block)) {
    return allocation_of(std::move(record))->deallocate(pointer, after);
  }
  if (process_registry().is_dying_block(block)) {
    return freed_before(pointer);
  }
  return std::nullopt;
}

}  // namespace

Allocation::~Allocation() {
  if (outer_) {
    outer_->end_view(*queue_);
  }
}

Result<Ref<Allocation>> Allocation::record_new(Queue& queue, const Facts& facts,
                                               const Placement& placement) {
  auto allocation = make_ref<Allocation>(queue, facts);
  if (facts.alignment == 0) {
    allocation->facts_.alignment = queue.device().properties().base_alignment;
  }
  if (placement.device != nullptr) {
    allocation->device_ = placement.device;
  }
  if (placement.outer != nullptr) {
    allocation->set_outer(*placement.outer);
  }
  // The pool may allocate memory that unfinished work of its previous owner still uses, but only on
  // the queue of that work.
  if (placement.pool != nullptr && placement.pool->frees_after_work()) {
    ISTHMUS_TRY(allocation->inherit(queue));
  }
  allocation->is_block_ = placement.pool != nullptr;
  allocation->register_with(placement.resource);
  return allocation;
}

// The events are not combined into one, since the combined event would have to watch each of them.
Result<void> Allocation::record_queue_work(Queue& queue) {
  if (queue.is_known_idle()) {
    return {};
  }
  std::vector<Ref<Event>> running;
  ISTHMUS_TRY(unfinished_on(queue, running));
  const auto begin = address(facts_.base) - address(start_of_uses());
  uses().add_all({queue.serial(), {begin, begin + facts_.nbytes}, true, true}, running);
  return {};
}

Result<void> Allocation::inherit(Queue& queue) {
  Ref<Event> last;
  if (outer_ || !queue.has_single_end(last)) {
    return record_queue_work(queue);
  }
  if (last) {
    uses_.inherit(queue.serial(), facts_.nbytes, std::move(last));
  }
  return {};
}

Result<void> Allocation::record_use(Queue& queue, const ByteRange& range) {
  const auto began_at = uses().begin();
  Undo rollback{[&] { uses().cancel(); }};
  auto event = queue.fence({});
  ISTHMUS_TRY(event);
  rollback.dismiss();
  uses().add({queue.serial(), range, true}, *event, began_at);
  return {};
}

void Allocation::register_with(MemoryResource* resource) {
  resource_ = Ref<MemoryResource>{resource};  // set first, since registry look-ups read it
  process_registry().add(*this);
  origin_ = Origin::internal;
  if (!outer_) {
    process_page_map.note_record(facts_.base, free_recorded);
  }
}

void Allocation::set_outer(Allocation& outer) {
  outer.begin_view(*queue_);
  device_ = &outer.device();
  is_nested_ = true;
  outer_ = Ref<Allocation>{&outer};
  any_nested_allocation.store(true, std::memory_order_relaxed);
  mark_as_divided();
}

bool Allocation::any_nested() noexcept {
  return any_nested_allocation.load(std::memory_order_relaxed);
}

// Marks the outermost record, since look-ups find that one.
void Allocation::mark_as_divided() noexcept {
  if (outer_) {
    outer_->mark_as_divided();
  } else if (!is_divided_.exchange(true, std::memory_order_relaxed)) {
    Registry::mark_divided(*this);
  }
}

void Allocation::mark_as_chunk() noexcept {
  is_chunk_.store(true, std::memory_order_relaxed);
  mark_as_divided();
}

Ref<Allocation> Allocation::record_block(Queue& queue, const Facts& facts,
                                         MemoryResource& resource) {
  auto allocation = make_ref<Allocation>(queue, facts);
  allocation->is_block_ = true;
  allocation->register_with(&resource);
  allocation->hold_by_pointer();
  return allocation;
}

void Allocation::hold_by_pointer() noexcept {
  retain();
  held_by_pointer_.store(true, std::memory_order_release);
}

// If the queue cannot be queried now, it is queried after the last reference was dropped,
// repeatedly until a query succeeds.
bool Allocation::drop_pointer(Queue* after) noexcept {
  if (!held_by_pointer_.exchange(false, std::memory_order_acq_rel)) {
    return false;
  }
  if (after != nullptr && !try_record_queue_work(*after)) {
    freed_after_ = Ref<Queue>{after};
  }
  release();
  return true;
}

bool Allocation::try_record_queue_work(Queue& queue) noexcept try {
  return static_cast<bool>(record_queue_work(queue));
} catch (const std::bad_alloc&) {
  return false;
}

Result<Ref<Allocation>> Allocation::adopt(Queue& queue, const Facts& facts, Owner owner,
                                          const Ref<Allocation>& outer) {
  release_large_on_demand();
  auto allocation = make_ref<Allocation>(queue, facts);
  if (outer) {  // look-ups find the outer allocation
    allocation->set_outer(*outer);
  } else {
    process_registry().add(*allocation);
  }
  allocation->origin_ = Origin::foreign;
  allocation->owner_ = std::move(owner);
  return allocation;
}

void Allocation::begin_view(Queue& queue) {
  if (outer_) {
    outer_->begin_view(queue);
  } else if (&queue != queue_.get()) {
    views_.begin(queue);
  }
}

// Adds the unfinished work of an exported queue to the uses. Returns false if the queue cannot be
// queried now: it then remains in `views_` for the rest of the allocation's lifetime.
bool Allocation::record_view_work(Queue& queue) {
  if (!queue.is_exported()) {
    return true;
  }
  std::vector<Ref<Event>> running;
  if (in_continuation() || queue.traits().query_may_block || queue.traits().is_queried_on_demand ||
      !queue.unfinished(running)) {
    return false;
  }
  uses_.add_all({queue.serial(), {0, facts_.nbytes}, true}, running);
  return true;
}

void Allocation::end_view(Queue& queue) noexcept {
  if (outer_) {
    outer_->end_view(queue);
    return;
  }
  if (&queue == queue_.get()) {
    return;
  }
  try {
    if (record_view_work(queue)) {
      views_.end(queue);
    }
  } catch (const std::bad_alloc&) {
    // As when the driver cannot be queried, the queue remains in `views_`.
  }
}

std::vector<Ref<Queue>> Allocation::exported_queues() {
  if (outer_) {
    return outer_->exported_queues();  // includes `queue_`, which `set_outer` added as a view's
  }
  std::vector<Ref<Queue>> queues;
  if (queue_->is_exported()) {
    queues.push_back(queue_);
  }
  views_.collect_exported(queues);
  return queues;
}

bool Allocation::has_exported_queue() noexcept {
  return outer_ ? outer_->has_exported_queue() : queue_->is_exported() || views_.any_exported();
}

Result<void> Allocation::unfinished_on_exported(const Queue* except, std::vector<Ref<Event>>& out) {
  if (!has_exported_queue()) {
    return {};
  }
  for (const auto& each : exported_queues()) {
    if (each.get() != except) {
      ISTHMUS_TRY(unfinished_on(*each, out));
    }
  }
  return {};
}

}  // namespace isthmus
