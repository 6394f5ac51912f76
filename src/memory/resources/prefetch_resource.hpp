// SPDX-License-Identifier: Apache-2.0
#pragma once
// Prefetches shared memory to the device when the memory is allocated.
//
// A block that is freed on another queue than it was allocated on is not reused before the prefetch
// has ended, since work on the other queue may not be ordered after the prefetch.

#include "core/mutex.hpp"
#include "core/thread_safety.hpp"
#include "memory/resources/adaptor.hpp"
#include "memory/resources/pointer_table.hpp"

namespace isthmus {

class PrefetchResource final : public Adaptor {
 public:
  explicit PrefetchResource(MemoryResource& upstream);
  [[nodiscard]] Result<void*> allocate(std::size_t nbytes, std::size_t alignment,
                                       Queue& queue) override;
  Result<void> deallocate(void* pointer, std::size_t nbytes, Queue* after) noexcept override;
  [[nodiscard]] void* allocate_fast(std::size_t nbytes, std::size_t alignment,
                                    Queue* queue) noexcept override {
    return does_prefetch_ ? nullptr : allocate_fast_from(upstream(), nbytes, alignment, queue);
  }
  [[nodiscard]] bool deallocate_fast(void* pointer, std::size_t nbytes,
                                     Queue* queue) noexcept override {
    return submitted_.is_empty() && deallocate_fast_to(upstream(), pointer, nbytes, queue);
  }

 private:
  struct Submitted {
    Ref<Event> event;
    std::uint64_t queue_serial;
  };
  void prefetch(void* pointer, std::size_t nbytes, Queue& queue) noexcept;
  [[nodiscard]] Ref<Queue> own_queue();

  const bool does_prefetch_;
  PointerTable<Submitted> submitted_;
  Mutex own_queue_lock_;
  Ref<Queue> own_queue_ ISTHMUS_GUARDED_BY(own_queue_lock_);  // created when first needed
};

}  // namespace isthmus
