// SPDX-License-Identifier: Apache-2.0
#include "memory/resources/prefetch_resource.hpp"

#include "core/lock_guard.hpp"
#include "core/sizes.hpp"
#include "memory/records/allocation_lookup.hpp"

namespace isthmus {
namespace {

// Prevents the reuse of the block's memory before `event` has completed. If the event cannot be
// recorded, because there is no memory or the block is unknown, waits for it.
void record_use_until(const Ref<Event>& event, const void* pointer, std::size_t nbytes) noexcept {
  try {
    auto allocation = allocation_at(pointer);
    if (allocation && *allocation) {
      auto& uses = (*allocation)->uses();
      const auto begin = address(pointer) - address((*allocation)->start_of_uses());
      uses.add({0, {begin, begin + nbytes}, true}, event, uses.begin());
      return;
    }
  } catch (const std::bad_alloc&) {
    // Waits, as for an unknown block.
  }
  static_cast<void>(event->wait_unchecked(std::nullopt));
}

}  // namespace

PrefetchResource::PrefetchResource(MemoryResource& upstream)
    : Adaptor{upstream},
      does_prefetch_{(upstream.kinds() & set_of(ISTHMUS_KIND_SHARED)) != 0 &&
                     (upstream.device().properties().capabilities & ISTHMUS_CAN_PREFETCH) != 0} {}

Result<void*> PrefetchResource::allocate(std::size_t nbytes, std::size_t alignment, Queue& queue) {
  auto memory = Adaptor::allocate(nbytes, alignment, queue);
  if (memory && does_prefetch_ && resource_of(*memory, nbytes).kind() == ISTHMUS_KIND_SHARED) {
    prefetch(*memory, nbytes, queue);
  }
  return memory;
}

// The prefetch is a hint, so its failure does not fail the request. If this function must wait for
// the prefetch and the queue is busy, it submits the prefetch to a separate queue: the caller's
// work may wait for an event that only the caller completes.
void PrefetchResource::prefetch(void* pointer, std::size_t nbytes, Queue& queue) noexcept try {
  const bool is_recorded = orders_frees();
  const bool may_wait_for_caller =
      !is_recorded && (queue.has_external_work() || !queue.is_known_idle());
  const auto chosen = may_wait_for_caller ? own_queue() : Ref<Queue>{&queue};
  if (!chosen) {
    return;
  }
  auto entry = PointerTable<Submitted>::make_entry(pointer, {nullptr, queue.serial()});
  auto event = chosen->prefetch(pointer, nbytes, false, {});
  if (!event || (*event)->settled()) {
    return;
  }
  if (is_recorded) {
    entry.mapped().event = *std::move(event);
    submitted_.reinsert(std::move(entry));
  } else {
    static_cast<void>((*event)->wait_unchecked(std::nullopt));
  }
} catch (const std::bad_alloc&) {
  // Nothing was submitted.
}

// The separate queue; null if the driver refuses to create one.
Ref<Queue> PrefetchResource::own_queue() {
  const LockGuard hold{own_queue_lock_};
  if (!own_queue_) {
    if (auto queue = Queue::create(context(), device())) {
      own_queue_ = *std::move(queue);
    }
  }
  return own_queue_;
}

Result<void> PrefetchResource::deallocate(void* pointer, std::size_t nbytes,
                                          Queue* after) noexcept {
  auto entry = submitted_.extract(pointer);
  if (!entry.empty()) {
    const auto& [event, queue_serial] = entry.mapped();
    if ((after == nullptr || after->serial() != queue_serial) && event->pending()) {
      record_use_until(event, pointer, nbytes);
    }
  }
  auto freed = Adaptor::deallocate(pointer, nbytes, after);
  if (!freed) {
    submitted_.reinsert(std::move(entry));
  }
  return freed;
}

}  // namespace isthmus
