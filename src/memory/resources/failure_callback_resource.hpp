// SPDX-License-Identifier: Apache-2.0
#pragma once
// Calls a function of the program when upstream is out of memory. The function may free memory and
// request a retry.

#include "core/owner.hpp"
#include "memory/resources/adaptor.hpp"

namespace isthmus {

class FailureCallbackResource final : public Adaptor {
 public:
  FailureCallbackResource(MemoryResource& upstream, isthmus_failure_function_t function,
                          Owner owner)
      : Adaptor{upstream}, function_{function}, owner_{std::move(owner)} {}
  [[nodiscard]] Result<void*> allocate(std::size_t nbytes, std::size_t alignment,
                                       Queue& queue) override;
  [[nodiscard]] void* allocate_fast(std::size_t nbytes, std::size_t alignment,
                                    Queue* queue) noexcept override {
    return allocate_fast_from(upstream(), nbytes, alignment, queue);
  }
  [[nodiscard]] bool deallocate_fast(void* pointer, std::size_t nbytes,
                                     Queue* queue) noexcept override {
    return deallocate_fast_to(upstream(), pointer, nbytes, queue);
  }

 private:
  [[nodiscard]] Status call(std::size_t nbytes, int& retry, const char*& message) const;

  const isthmus_failure_function_t function_;
  const Owner owner_;
};

}  // namespace isthmus
