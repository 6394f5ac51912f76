#pragma once
// Asks the driver to move shared memory to the device as it is allocated.
//
// Freed on another queue than it was allocated on, a block is held back until what was asked has
// ended: it may be nobody's work but the driver's.

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
  ref<queue> own_queue_;  // made when it is first needed
};

}  // namespace isthmus
