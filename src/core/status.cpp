#include "core/status.hpp"

#include <exception>
#include <iterator>
#include <new>

namespace isthmus {

// One allocation, with the text behind the detail.
error::detail* error::make(status code, std::string_view message) noexcept {
  void* const memory = ::operator new(sizeof(detail) + message.size() + 1, std::nothrow);
  if (memory == nullptr) {
    return nullptr;
  }
  char* const text = static_cast<char*>(memory) + sizeof(detail);
  message.copy(text, message.size());
  text[message.size()] = '\0';
  return new (memory) detail{code, text, {1}};
}

error::error(status code, std::string_view message) noexcept : detail_{make(code, message)} {
  if (detail_ == nullptr) {
    *this = no_memory();
  }
}

error::error(const error& other) noexcept : detail_{other.detail_} {
  if (detail_ != nullptr) {
    detail_->holders.fetch_add(1, std::memory_order_relaxed);
  }
}

void error::let_go(detail* unused) noexcept {
  if (unused->holders.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    unused->~detail();
    ::operator delete(unused);
  }
}

// Lives for ever: the first holder is nobody, who never lets go.
error error::no_memory() noexcept {
  static constinit detail only{ISTHMUS_ERROR_OUT_OF_MEMORY,
                               "the host has no memory left for the library's own records",
                               {1}};
  only.holders.fetch_add(1, std::memory_order_relaxed);
  error made;
  made.detail_ = &only;
  return made;
}

error fail_with(status code, fmt::string_view format, fmt::format_args arguments) noexcept try {
  fmt::memory_buffer text;
  fmt::vformat_to(std::back_inserter(text), format, arguments);
  return {code, std::string_view{text.data(), text.size()}};
} catch (const std::exception&) {
  return error::no_memory();
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
