// SPDX-License-Identifier: Apache-2.0
#pragma once
// Calls a function of the caller's when there is no memory: it may free some and request a retry.

#include "core/owner.hpp"
#include "memory/adaptors/adaptor.hpp"

namespace isthmus {

class FailureCallbackResource final : public Adaptor {
 public:
  FailureCallbackResource(MemoryResource& upstream, isthmus_failure_function_t function, Owner keep)
      : Adaptor{upstream}, function_{function}, keep_{std::move(keep)} {}
  [[nodiscard]] Result<void*> allocate(std::size_t nbytes, std::size_t alignment,
                                       Queue& queue) override;
  [[nodiscard]] void* allocate_warm(std::size_t nbytes, std::size_t alignment,
                                    Queue* queue) noexcept override {
    return take_warm(upstream(), nbytes, alignment, queue);
  }
  [[nodiscard]] bool deallocate_warm(void* pointer, std::size_t nbytes,
                                     Queue* queue) noexcept override {
    return give_back_warm(upstream(), pointer, nbytes, queue);
  }

 private:
  const isthmus_failure_function_t function_;
  const Owner keep_;
};

}  // namespace isthmus
