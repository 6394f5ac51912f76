// SPDX-License-Identifier: Apache-2.0
#include "core/interrupt.hpp"

#include "core/expects.hpp"

namespace isthmus {

Result<void> call_interrupt() {
  ISTHMUS_EXPECTS(thread_interrupt.function != nullptr);
  const char* message = nullptr;
  if (thread_interrupt.function(thread_interrupt.object, &message) == 0) {
    return {};
  }
  return Error{ISTHMUS_ERROR_CALLBACK, message != nullptr ? message : "the wait was interrupted"};
}

}  // namespace isthmus
