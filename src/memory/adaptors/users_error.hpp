#pragma once
// The error that a function of the caller's returned.

#include "core/status.hpp"

namespace isthmus {

// `message` as it is; a text that names `what` where there is none. A status that is no error is
// CALLBACK.
[[nodiscard]] inline error users_error(const char* what, status told, const char* message) {
  const auto code = is_error(told) ? told : ISTHMUS_ERROR_CALLBACK;
  return message != nullptr ? error{code, message}
                            : fail(code, "{} failed with status {}, {}, and no message", what, told,
                                   status_name(told));
}

}  // namespace isthmus
