// SPDX-License-Identifier: Apache-2.0
// The exceptions of the C++ API. Each is an `isthmus::error`, whose text states the value, the
// limit and the remedy. Each status that programs handle separately has a class:
//
//   try { ... } catch (const isthmus::out_of_memory& problem) { ... }
//
// out_of_memory does not derive from std::bad_alloc: with two std::exception bases, no handler for
// std::exception would catch it. The std::pmr adaptor of host_resource.hpp throws a std::bad_alloc,
// as standard containers require. A handler for std::exception catches either.
//
// Cost: none unless an exception is thrown. Thread safety: as plain values.
#pragma once

#include <isthmus/status.hpp>

#include <concepts>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace isthmus {
inline namespace v1 {

// The base of all exceptions of this API. A status without a class is thrown as `error` itself.
class error : public std::runtime_error {
 public:
  error(v1::status code, const std::string& message)
      : std::runtime_error(message.empty() ? std::string(name(code)) : message), code_(code) {}

  [[nodiscard]] v1::status status() const noexcept { return code_; }

 private:
  v1::status code_;
};

// The exception of one status.
template <v1::status Code>
class error_of final : public error {
 public:
  explicit error_of(const std::string& message) : error(Code, message) {}
};

using invalid_argument = error_of<status::invalid_argument>;
using out_of_range = error_of<status::out_of_range>;
using out_of_memory = error_of<status::out_of_memory>;
using unsupported = error_of<status::unsupported>;
using wrong_context = error_of<status::wrong_context>;
using not_found = error_of<status::not_found>;
using closed = error_of<status::closed>;
using read_only = error_of<status::read_only>;
using device_lost = error_of<status::device_lost>;
using driver_error = error_of<status::driver>;
using dependency_failed = error_of<status::dependency>;
using abandoned = error_of<status::abandoned>;
using callback_failed = error_of<status::callback>;
using conflict = error_of<status::conflict>;
using deadlock = error_of<status::deadlock>;

// Throws the exception class of `code`.
[[noreturn]] inline void raise(status code, const std::string& message) {
  switch (code) {
    case status::invalid_argument: throw invalid_argument(message);
    case status::out_of_range: throw out_of_range(message);
    case status::out_of_memory: throw out_of_memory(message);
    case status::unsupported: throw unsupported(message);
    case status::wrong_context: throw wrong_context(message);
    case status::not_found: throw not_found(message);
    case status::closed: throw closed(message);
    case status::read_only: throw read_only(message);
    case status::device_lost: throw device_lost(message);
    case status::driver: throw driver_error(message);
    case status::dependency: throw dependency_failed(message);
    case status::abandoned: throw abandoned(message);
    case status::callback: throw callback_failed(message);
    case status::conflict: throw conflict(message);
    case status::deadlock: throw deadlock(message);
    default: throw error(code, message);
  }
}

namespace detail {

// Throws if a call of the C ABI failed, with the message that isthmus_error_message() returns.
inline void check(isthmus_status_t code) {
  if (code != ISTHMUS_OK) raise(static_cast<v1::status>(code), isthmus_error_message());
}

}  // namespace detail
}  // namespace v1
}  // namespace isthmus
