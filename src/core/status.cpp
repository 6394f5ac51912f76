// SPDX-License-Identifier: Apache-2.0
#include "core/status.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <iterator>
#include <new>

#include "core/device_losses.hpp"

namespace isthmus {

// Preallocated memory for errors, for when the host has no memory left. Text that does not fit is
// truncated. Thread-safe: an entry belongs to the thread that set `in_use`; acquire and release
// order its reuse.
class Error::Spares {
 public:
  static constexpr std::size_t k_bytes = sizeof(Detail) + k_max_preallocated_text + 1;
  // Null if all entries are in use.
  [[nodiscard]] void* allocate() noexcept {
    for (auto& entry : entries_) {
      if (!entry.in_use.exchange(true, std::memory_order_acquire)) {
        return entry.memory.data();
      }
    }
    return nullptr;
  }
  // Whether `memory` was one of these entries.
  bool deallocate(const void* memory) noexcept {
    for (auto& entry : entries_) {
      if (entry.memory.data() == memory) {
        entry.in_use.store(false, std::memory_order_release);
        return true;
      }
    }
    return false;
  }

 private:
  struct Spare {
    alignas(Detail) std::array<std::byte, k_bytes> memory{};
    std::atomic<bool> in_use{false};
  };
  std::array<Spare, 256> entries_{};
};

constinit Error::Spares Error::spares_{};

// Cuts at the beginning of a UTF-8 character.
std::string_view Error::truncated(std::string_view message) noexcept {
  auto end = std::min(message.size(), k_max_preallocated_text);
  while (end < message.size() && end > 0 && (static_cast<unsigned char>(message[end]) >> 6) == 2) {
    --end;
  }
  return message.substr(0, end);
}

// One allocation: the text follows the detail.
Error::Detail* Error::create_detail(Status code, std::string_view message) noexcept {
  void* memory = ::operator new(sizeof(Detail) + message.size() + 1, std::nothrow);
  if (memory == nullptr) {
    memory = spares_.allocate();
    message = truncated(message);
  }
  if (memory == nullptr) {
    return nullptr;
  }
  char* const text = static_cast<char*>(memory) + sizeof(Detail);
  message.copy(text, message.size());
  text[message.size()] = '\0';
  return new (memory) Detail{code, text, {1}};
}

Error::Error(Status code, std::string_view message) noexcept
    : detail_{create_detail(code, message)} {
  if (detail_ == nullptr) {
    *this = no_memory();
  }
  if (code == ISTHMUS_ERROR_DEVICE_LOST) {
    device_losses.fetch_add(1, std::memory_order_release);
  }
}

Error::Error(const Error& other) noexcept : detail_{other.detail_} {
  if (detail_ != nullptr) {
    detail_->holders.fetch_add(1, std::memory_order_relaxed);
  }
}

void Error::release_detail(Detail* detail) noexcept {
  if (detail->holders.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    detail->~Detail();
    if (!spares_.deallocate(detail)) {
      ::operator delete(detail);
    }
  }
}

// Never freed: the initial count of 1 has no owner.
Error Error::no_memory() noexcept {
  static constinit Detail only{ISTHMUS_ERROR_OUT_OF_MEMORY,
                               "the host has no memory left for the library's own records",
                               {1}};
  only.holders.fetch_add(1, std::memory_order_relaxed);
  Error error;
  error.detail_ = &only;
  return error;
}

Error fail_with(Status code, fmt::string_view format, fmt::format_args arguments) noexcept try {
  fmt::memory_buffer text;
  fmt::vformat_to(std::back_inserter(text), format, arguments);
  return {code, std::string_view{text.data(), text.size()}};
} catch (const std::bad_alloc&) {
  std::array<char, Error::k_max_preallocated_text + 1> text;
  const auto written = fmt::vformat_to_n(text.data(), text.size(), format, arguments);
  return {code, std::string_view{text.data(), std::min(written.size, text.size())}};
} catch (const std::exception&) {
  return Error::no_memory();
}

const char* status_name(Status code) noexcept {
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
    case ISTHMUS_ERROR_CONFLICT: return "conflict";
    case ISTHMUS_ERROR_DEADLOCK: return "deadlock";
    default: return "unknown status";
  }
}

}  // namespace isthmus
