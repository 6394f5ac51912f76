// SPDX-License-Identifier: Apache-2.0
#pragma once
// The outcome of an operation inside the library: a value or an error, never an exception.
//
// An error is one pointer, null for success, so that a `Result<void>` costs nothing on a warm path.

#include <isthmus/isthmus.h>

#include <fmt/format.h>

#include <atomic>
#include <cstddef>
#include <string_view>
#include <utility>
#include <variant>

#include "core/expects.hpp"

namespace isthmus {

using Status = isthmus_status_t;

// The stable, lower-case name of a status, as returned by `isthmus_status_name`.
[[nodiscard]] const char* status_name(Status code) noexcept;

// For statuses passed by callers: whether it is one of the header's errors.
[[nodiscard]] constexpr bool is_error(Status code) noexcept {
  return code <= ISTHMUS_ERROR_INVALID_ARGUMENT && code >= ISTHMUS_ERROR_DEADLOCK;
}

// Immutable and shared: a copy increments a count. Creating one never fails: without memory for it,
// one of 256 preallocated entries is used and, when those are in use too, `no_memory`. Thread-safe,
// as a shared pointer is.
class [[nodiscard]] Error {
 public:
  // Maximum length of the text in a preallocated entry; longer text is truncated.
  static constexpr std::size_t k_max_preallocated_text = 1000;

  Error() noexcept = default;
  Error(Status code, std::string_view message) noexcept;
  // OUT_OF_MEMORY of the host. Allocates nothing.
  [[nodiscard]] static Error no_memory() noexcept;
  Error(const Error& other) noexcept;
  Error(Error&& other) noexcept : detail_{std::exchange(other.detail_, nullptr)} {}
  Error& operator=(Error other) noexcept {
    std::swap(detail_, other.detail_);
    return *this;
  }
  ~Error() {
    if (detail_ != nullptr) {
      release_detail(detail_);
    }
  }

  [[nodiscard]] explicit operator bool() const noexcept { return detail_ != nullptr; }
  [[nodiscard]] Status code() const noexcept {
    return detail_ != nullptr ? detail_->code : ISTHMUS_OK;
  }
  // Whether both are the same error object, and not only equal.
  [[nodiscard]] bool is(const Error& other) const noexcept {
    return detail_ != nullptr && detail_ == other.detail_;
  }
  [[nodiscard]] const char* message() const noexcept {
    return detail_ != nullptr ? detail_->text : "";
  }

 private:
  struct Detail {
    Status code;
    const char* text;  // follows the detail, or is never freed
    // Incremented relaxed. Decremented with acq_rel, so that the thread that frees the detail is
    // ordered after all other accesses.
    std::atomic<std::size_t> holders;
  };
  class Spares;
  static Spares spares_;
  static std::string_view truncated(std::string_view message) noexcept;
  static Detail* create_detail(Status code, std::string_view message) noexcept;
  static void release_detail(Detail* detail) noexcept;

  Detail* detail_ = nullptr;
};

// Not inline, so that the formatter is compiled once and not wherever an error can occur.
[[nodiscard]] Error fail_with(Status code, fmt::string_view format,
                              fmt::format_args arguments) noexcept;

// The format is checked at compile time.
template <class... Args>
[[nodiscard]] Error fail(Status code, fmt::format_string<Args...> format, Args&&... args) noexcept {
  return fail_with(code, format, fmt::make_format_args(args...));
}

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_{std::in_place_index<0>, std::move(value)} {}
  Result(isthmus::Error failure) : state_{std::in_place_index<1>, std::move(failure)} {
    ISTHMUS_EXPECTS(std::get<1>(state_));
  }

  [[nodiscard]] explicit operator bool() const noexcept { return state_.index() == 0; }
  [[nodiscard]] T& operator*() & noexcept { return value(); }
  [[nodiscard]] T&& operator*() && noexcept { return std::move(value()); }
  [[nodiscard]] T* operator->() noexcept { return &value(); }
  [[nodiscard]] isthmus::Error take_error() noexcept {
    ISTHMUS_EXPECTS(state_.index() == 1);
    return std::move(*std::get_if<1>(&state_));
  }
  [[nodiscard]] const isthmus::Error& failure() const noexcept {
    ISTHMUS_EXPECTS(state_.index() == 1);
    return *std::get_if<1>(&state_);
  }

 private:
  [[nodiscard]] T& value() noexcept {
    ISTHMUS_EXPECTS(state_.index() == 0);
    return *std::get_if<0>(&state_);
  }

  std::variant<T, isthmus::Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() noexcept = default;
  Result(isthmus::Error failure) noexcept : error_{std::move(failure)} {}

  [[nodiscard]] explicit operator bool() const noexcept { return !error_; }
  [[nodiscard]] isthmus::Error take_error() noexcept { return std::move(error_); }
  [[nodiscard]] const isthmus::Error& failure() const noexcept { return error_; }

 private:
  isthmus::Error error_;
};

template <class T>
[[nodiscard]] bool is_out_of_memory(const Result<T>& result) noexcept {
  return !result && result.failure().code() == ISTHMUS_ERROR_OUT_OF_MEMORY;
}

}  // namespace isthmus

// Returns the error of `expression` from the enclosing function, if it has one.
#define ISTHMUS_TRY(expression)                              \
  do {                                                       \
    if (auto&& isthmus_try_ = (expression); !isthmus_try_) { \
      return isthmus_try_.take_error();                      \
    }                                                        \
  } while (false)
