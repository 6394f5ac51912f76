// SPDX-License-Identifier: Apache-2.0
#include "memory/adaptors/prefetch_resource.hpp"

#include "core/sizes.hpp"
#include "memory/pooled.hpp"

namespace isthmus {
namespace {

// Keeps the block's memory from being reused before `ended` has completed. Waits for it if there is
// no memory to record it, or if the block is unknown.
void hold_until(const Ref<Event>& ended, const void* pointer, std::size_t nbytes) noexcept {
  try {
    auto known = allocation_at(pointer);
    if (known && *known) {
      auto& uses = (*known)->uses();
      const auto begin = address(pointer) - address((*known)->start_of_uses());
      uses.add({0, {begin, begin + nbytes}, true}, ended, uses.begin());
      return;
    }
  } catch (const std::bad_alloc&) {
    // As for an unknown block.
  }
  static_cast<void>(ended->wait(std::nullopt));
}

}  // namespace

PrefetchResource::PrefetchResource(MemoryResource& upstream)
    : Adaptor{upstream},
      does_ask_{(upstream.kinds() & set_of(ISTHMUS_KIND_SHARED)) != 0 &&
                (upstream.device().properties().capabilities & ISTHMUS_CAN_PREFETCH) != 0} {}

Result<void*> PrefetchResource::allocate(std::size_t nbytes, std::size_t alignment, Queue& queue) {
  auto memory = Adaptor::allocate(nbytes, alignment, queue);
  if (memory && does_ask_ && giver_of(*memory, nbytes).kind() == ISTHMUS_KIND_SHARED) {
    ask(*memory, nbytes, queue);
  }
  return memory;
}

// A hint: its failure is not an error of the request. If it has to be waited for and the queue is
// busy, it goes to a separate queue: the caller's work may wait for an event that only the caller
// completes.
void PrefetchResource::ask(void* pointer, std::size_t nbytes, Queue& queue) noexcept try {
  const bool is_noted = orders_frees();
  const bool may_wait_for_caller = !is_noted && (queue.has_external_work() || !queue.quiet());
  const auto chosen = may_wait_for_caller ? own_queue() : Ref<Queue>{&queue};
  if (!chosen) {
    return;
  }
  auto note = PointerTable<Submitted>::make(pointer, {nullptr, queue.serial()});
  auto asked = chosen->prefetch(pointer, nbytes, false, {});
  if (!asked || (*asked)->settled()) {
    return;
  }
  if (is_noted) {
    note.mapped().ended = *std::move(asked);
    asked_.put_back(std::move(note));
  } else {
    static_cast<void>((*asked)->wait(std::nullopt));
  }
} catch (const std::bad_alloc&) {
  // Nothing was submitted.
}

// Null if the driver refuses to create one.
Ref<Queue> PrefetchResource::own_queue() {
  const std::lock_guard hold{own_queue_lock_};
  if (!own_queue_) {
    if (auto made = context().create_queue(device())) {
      own_queue_ = *std::move(made);
    }
  }
  return own_queue_;
}

Result<void> PrefetchResource::deallocate(void* pointer, std::size_t nbytes,
                                          Queue* behind) noexcept {
  auto noted = asked_.take(pointer);
  if (!noted.empty()) {
    const auto& [ended, on] = noted.mapped();
    if ((behind == nullptr || behind->serial() != on) && ended->pending()) {
      hold_until(ended, pointer, nbytes);
    }
  }
  auto freed = Adaptor::deallocate(pointer, nbytes, behind);
  if (!freed) {
    asked_.put_back(std::move(noted));
  }
  return freed;
}

}  // namespace isthmus
