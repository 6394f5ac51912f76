// SPDX-License-Identifier: Apache-2.0
#pragma once
// Requests from the driver to move shared memory to the device when it is allocated.
//
// A block that is freed on another queue than it was allocated on is held back until the prefetch
// has ended, since the work of the other queue may not be ordered after it.

#include <mutex>

#include "memory/adaptors/adaptor.hpp"
#include "memory/adaptors/pointer_table.hpp"

namespace isthmus {

class PrefetchResource final : public Adaptor {
 public:
  explicit PrefetchResource(MemoryResource& upstream);
  [[nodiscard]] Result<void*> allocate(std::size_t nbytes, std::size_t alignment,
                                       Queue& queue) override;
  Result<void> deallocate(void* pointer, std::size_t nbytes, Queue* behind) noexcept override;
  [[nodiscard]] void* allocate_warm(std::size_t nbytes, std::size_t alignment,
                                    Queue* queue) noexcept override {
    return does_ask_ ? nullptr : take_warm(upstream(), nbytes, alignment, queue);
  }
  [[nodiscard]] bool deallocate_warm(void* pointer, std::size_t nbytes,
                                     Queue* queue) noexcept override {
    return asked_.is_empty() && give_back_warm(upstream(), pointer, nbytes, queue);
  }

 private:
  struct Submitted {
    Ref<Event> ended;
    std::uint64_t on;  // the queue's serial number
  };
  void ask(void* pointer, std::size_t nbytes, Queue& queue) noexcept;
  [[nodiscard]] Ref<Queue> own_queue();

  const bool does_ask_;
  PointerTable<Submitted> asked_;
  std::mutex own_queue_lock_;
  Ref<Queue> own_queue_;  // created when first needed
};

}  // namespace isthmus
