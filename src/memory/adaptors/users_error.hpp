// SPDX-License-Identifier: Apache-2.0
#pragma once
// The error of a function of the caller's.

#include "core/status.hpp"

namespace isthmus {

// `message` as it is; if null, a text that names `what`. A status that is not an error becomes
// CALLBACK.
[[nodiscard]] inline error users_error(const char* what, status told, const char* message) {
  const auto code = is_error(told) ? told : ISTHMUS_ERROR_CALLBACK;
  return message != nullptr ? error{code, message}
                            : fail(code, "{} failed with status {}, {}, and no message", what, told,
                                   status_name(told));
}

}  // namespace isthmus
