#include "core/status.hpp"

namespace isthmus {

error fail_with(status code, fmt::string_view format, fmt::format_args arguments) {
  return {code, fmt::vformat(format, arguments)};
}

const char* status_name(status code) noexcept {
  switch (code) {
    case ISTHMUS_OK: return "ok";
    case ISTHMUS_PENDING: return "pending";
    case ISTHMUS_ERROR_INVALID_ARGUMENT: return "invalid argument";
    case ISTHMUS_ERROR_OUT_OF_RANGE: return "out of range";
    case ISTHMUS_ERROR_OUT_OF_MEMORY: return "out of memory";
    case ISTHMUS_ERROR_UNSUPPORTED: return "unsupported";
    case ISTHMUS_ERROR_WRONG_CONTEXT: return "wrong context";
    case ISTHMUS_ERROR_NOT_FOUND: return "not found";
    case ISTHMUS_ERROR_CLOSED: return "closed";
    case ISTHMUS_ERROR_READ_ONLY: return "read-only";
    case ISTHMUS_ERROR_DEVICE_LOST: return "device lost";
    case ISTHMUS_ERROR_DRIVER: return "driver error";
    case ISTHMUS_ERROR_TIMEOUT: return "timeout";
    case ISTHMUS_ERROR_DEPENDENCY: return "dependency failed";
    case ISTHMUS_ERROR_ABANDONED: return "abandoned";
    case ISTHMUS_ERROR_CALLBACK: return "function failed";
    case ISTHMUS_ERROR_FORKED: return "forked";
    case ISTHMUS_ERROR_INTERNAL: return "internal error";
    default: return "unknown status";
  }
}

}  // namespace isthmus
