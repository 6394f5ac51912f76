// SPDX-License-Identifier: Apache-2.0
#pragma once
// The error that a callback of the program reports.

#include "core/status.hpp"

namespace isthmus {

// The error has the text `message`, or, if that is null, a text that contains `name`. A status that
// is not an error becomes CALLBACK.
[[nodiscard]] inline Error callback_error(const char* name, Status status, const char* message) {
  const auto code = is_error(status) ? status : ISTHMUS_ERROR_CALLBACK;
  return message != nullptr ? Error{code, message}
                            : fail(code, "{} failed with status {}, {}, and no message", name,
                                   status, status_name(status));
}

}  // namespace isthmus
