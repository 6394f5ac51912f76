// SPDX-License-Identifier: Apache-2.0
#pragma once
// The error of a function of the caller's.

#include "core/status.hpp"

namespace isthmus {

// `message` as it is; if null, a text that names `name`. A status that is not an error becomes
// CALLBACK.
[[nodiscard]] inline Error users_error(const char* name, Status told, const char* message) {
  const auto code = is_error(told) ? told : ISTHMUS_ERROR_CALLBACK;
  return message != nullptr ? Error{code, message}
                            : fail(code, "{} failed with status {}, {}, and no message", name, told,
                                   status_name(told));
}

}  // namespace isthmus
