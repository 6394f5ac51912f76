// SPDX-License-Identifier: Apache-2.0
#pragma once
// Preconditions as code. `ISTHMUS_EXPECTS(condition)` states at the start of a function what its
// callers inside the library ensure. A failure is a fault of the library: arguments of the public
// API are validated and reported as an `Error` instead.
//
// ISTHMUS_DEBUG, which the CMake variable of that name sets, selects what is evaluated:
//   0  nothing: conditions are compiled, but have no code (presets release, bench and wheel)
//   1  ISTHMUS_EXPECTS: conditions that cost a few instructions (presets dev and clang)
//   2  also ISTHMUS_EXPECTS_SLOW: conditions that call the system or inspect a whole structure
//      (presets asan, tsan and fuzz, which run the stress tests and the fuzzers)
//
// A failure prints file, line, condition and the values that follow it, and aborts. Conditions must
// have no effect, and may be used in constexpr functions. Thread-safe; allocates no memory.

#include <concepts>
#include <cstdio>
#include <cstdlib>
#include <type_traits>

#ifndef ISTHMUS_DEBUG
#define ISTHMUS_DEBUG 0
#endif

namespace isthmus {

struct FailedPrecondition {
  const char* file;
  int line;
  const char* condition;
  const char* value_names;  // separated by commas; empty if there are none
};

template <class Value>
  requires std::is_arithmetic_v<Value> || std::is_enum_v<Value> || std::is_pointer_v<Value>
void print_value(Value value) noexcept {
  if constexpr (std::is_pointer_v<Value>) {
    std::fprintf(stderr, " %p", static_cast<const void*>(value));
  } else if constexpr (std::is_floating_point_v<Value>) {
    std::fprintf(stderr, " %g", static_cast<double>(value));
  } else if constexpr (std::signed_integral<Value> || std::is_enum_v<Value>) {
    std::fprintf(stderr, " %lld", static_cast<long long>(value));
  } else {
    std::fprintf(stderr, " %llu", static_cast<unsigned long long>(value));
  }
}

template <class... Values>
[[noreturn, gnu::cold, gnu::noinline]] void fail_precondition(const FailedPrecondition& failed,
                                                              Values... values) noexcept {
  std::fprintf(stderr, "%s:%d: precondition failed: %s", failed.file, failed.line,
               failed.condition);
  if constexpr (sizeof...(values) > 0) {
    std::fprintf(stderr, "; %s:", failed.value_names);
    (print_value(values), ...);
  }
  std::fputc('\n', stderr);
  std::abort();
}

}  // namespace isthmus

#define ISTHMUS_EXPECTS_EVALUATED(condition, ...) \
  (static_cast<bool>(condition)                   \
       ? static_cast<void>(0)                     \
       : ::isthmus::fail_precondition(            \
             {__FILE__, __LINE__, #condition, #__VA_ARGS__} __VA_OPT__(, ) __VA_ARGS__))
#define ISTHMUS_EXPECTS_UNEVALUATED(condition, ...) \
  static_cast<void>(sizeof(static_cast<bool>(condition)))

#if ISTHMUS_DEBUG >= 1
#define ISTHMUS_EXPECTS(...) ISTHMUS_EXPECTS_EVALUATED(__VA_ARGS__)
#else
#define ISTHMUS_EXPECTS(...) ISTHMUS_EXPECTS_UNEVALUATED(__VA_ARGS__)
#endif
#if ISTHMUS_DEBUG >= 2
#define ISTHMUS_EXPECTS_SLOW(...) ISTHMUS_EXPECTS_EVALUATED(__VA_ARGS__)
#else
#define ISTHMUS_EXPECTS_SLOW(...) ISTHMUS_EXPECTS_UNEVALUATED(__VA_ARGS__)
#endif
