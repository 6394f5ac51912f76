// Bytes to move, and how failures are looked at.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <isthmus/isthmus.hpp>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace support {

using bytes = std::vector<std::byte>;

// No period that a wrong offset could hide behind.
inline bytes noise(std::size_t nbytes, unsigned seed = 1) {
  std::mt19937_64 random(seed);
  std::vector<std::uint64_t> words(nbytes / sizeof(std::uint64_t) + 1);
  for (std::uint64_t& word : words) word = random();
  const auto all = std::as_bytes(std::span(words)).first(nbytes);
  return {all.begin(), all.end()};
}

inline bytes read(const isthmus::buffer& from) {
  bytes result(from.size());
  isthmus::copy(std::span(result), from);
  return result;
}

inline void write(const isthmus::buffer& to, const bytes& data) {
  isthmus::copy(to, std::span(data));
}

// Where two byte strings first differ, instead of a page of numbers.
inline ::testing::AssertionResult same(std::span<const std::byte> got,
                                       std::span<const std::byte> want) {
  if (got.size() != want.size()) {
    return ::testing::AssertionFailure() << got.size() << " bytes instead of " << want.size();
  }
  if (got.empty() || std::memcmp(got.data(), want.data(), got.size()) == 0) {
    return ::testing::AssertionSuccess();
  }
  const auto [a, b] = std::mismatch(got.begin(), got.end(), want.begin());
  return ::testing::AssertionFailure()
         << "byte " << a - got.begin() << " of " << got.size() << " is " << std::to_integer<int>(*a)
         << ", not " << std::to_integer<int>(*b);
}

// Each of `parts` is in the message: the value that was given, and the limit.
inline ::testing::AssertionResult tells(const std::string& message,
                                        const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    if (message.find(part) == std::string::npos) {
      return ::testing::AssertionFailure() << '"' << message << "\" does not tell " << part;
    }
  }
  return ::testing::AssertionSuccess();
}

// A call of the C ABI failed as documented.
inline ::testing::AssertionResult refused(isthmus_status_t got, isthmus_status_t want,
                                          const std::vector<std::string>& parts = {}) {
  if (got != want) {
    return ::testing::AssertionFailure()
           << isthmus_status_name(got) << " instead of " << isthmus_status_name(want) << ": "
           << isthmus_error_message();
  }
  return tells(isthmus_error_message(), parts);
}

// A call of the C++ surface threw as documented.
template <class Function>
::testing::AssertionResult throws(isthmus::status want, const std::vector<std::string>& parts,
                                  Function&& function) {
  try {
    function();
  } catch (const isthmus::error& problem) {
    if (problem.status() != want) {
      return ::testing::AssertionFailure()
             << name(problem.status()) << " instead of " << name(want) << ": " << problem.what();
    }
    return tells(problem.what(), parts);
  }
  return ::testing::AssertionFailure() << "nothing thrown, " << name(want) << " expected";
}
template <class Function>
::testing::AssertionResult throws(isthmus::status want, Function&& function) {
  return throws(want, {}, std::forward<Function>(function));
}

}  // namespace support
