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

class prefetch_resource final : public adaptor {
 public:
  explicit prefetch_resource(memory_resource& upstream);
  [[nodiscard]] result<void*> allocate(std::size_t nbytes, std::size_t alignment,
                                       queue& on) override;
  result<void> deallocate(void* pointer, std::size_t nbytes, queue* behind) noexcept override;
  [[nodiscard]] void* allocate_warm(std::size_t nbytes, std::size_t alignment,
                                    queue* on) noexcept override {
    return does_ask_ ? nullptr : take_warm(upstream(), nbytes, alignment, on);
  }
  [[nodiscard]] bool deallocate_warm(void* pointer, std::size_t nbytes,
                                     queue* on) noexcept override {
    return asked_.is_empty() && give_back_warm(upstream(), pointer, nbytes, on);
  }

 private:
  struct submitted {
    ref<event> ended;
    std::uint64_t on;  // the queue's serial number
  };
  void ask(void* pointer, std::size_t nbytes, queue& on) noexcept;
  [[nodiscard]] ref<queue> own_queue();

  const bool does_ask_;
  pointer_table<submitted> asked_;
  std::mutex own_queue_lock_;
  ref<queue> own_queue_;  // created when first needed
};

}  // namespace isthmus
