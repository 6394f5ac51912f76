// SPDX-License-Identifier: Apache-2.0
#include "memory/resources/failure_callback_resource.hpp"

#include "memory/base/using_block.hpp"
#include "memory/resources/users_error.hpp"

namespace isthmus {

// The function may allocate, and this resource may be the current one.
Status FailureCallbackResource::call(std::size_t nbytes, int& retry, const char*& message) const {
  const WithoutCurrentResource without_current;
  return function_(owner_.object(), nbytes, &retry, &message);
}

Result<void*> FailureCallbackResource::allocate(std::size_t nbytes, std::size_t alignment,
                                                Queue& queue) {
  for (;;) {
    auto memory = Adaptor::allocate(nbytes, alignment, queue);
    if (!is_out_of_memory(memory)) {
      return memory;
    }
    int retry = 0;
    const char* message = nullptr;
    const auto status = call(nbytes, retry, message);
    if (status != ISTHMUS_OK) {
      return callback_error("the failure callback", status, message);
    }
    if (retry == 0) {
      return memory;
    }
  }
}

}  // namespace isthmus
