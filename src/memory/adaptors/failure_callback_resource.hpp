// SPDX-License-Identifier: Apache-2.0
#pragma once
// Calls a function of the caller's when there is no memory: it may free some and request a retry.

#include "core/owner.hpp"
#include "memory/adaptors/adaptor.hpp"

namespace isthmus {

class failure_callback_resource final : public adaptor {
 public:
  failure_callback_resource(memory_resource& upstream, isthmus_failure_function_t function,
                            owner keep)
      : adaptor{upstream}, function_{function}, keep_{std::move(keep)} {}
  [[nodiscard]] result<void*> allocate(std::size_t nbytes, std::size_t alignment,
                                       queue& on) override;
  [[nodiscard]] void* allocate_warm(std::size_t nbytes, std::size_t alignment,
                                    queue* on) noexcept override {
    return take_warm(upstream(), nbytes, alignment, on);
  }
  [[nodiscard]] bool deallocate_warm(void* pointer, std::size_t nbytes,
                                     queue* on) noexcept override {
    return give_back_warm(upstream(), pointer, nbytes, on);
  }

 private:
  const isthmus_failure_function_t function_;
  const owner keep_;
};

}  // namespace isthmus
