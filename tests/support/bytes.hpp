// SPDX-License-Identifier: Apache-2.0
// Test data, and assertions on contents and on failures.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <isthmus/isthmus.hpp>
#include <span>
#include <string>
#include <vector>

namespace support {

using bytes = std::vector<std::byte>;

// SplitMix64 (Steele, Lea and Flood, 2014). Not instrumented: under ThreadSanitizer generating the
// data took longer than copying it.
__attribute__((no_sanitize("thread"))) inline void fill_with_noise(std::byte* at,
                                                                   std::size_t nbytes,
                                                                   std::uint64_t state) {
  for (std::size_t done = 0; done < nbytes; done += sizeof state) {
    std::uint64_t word = state += 0x9e3779b97f4a7c15;
    word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9;
    word = (word ^ word >> 27) * 0x94d049bb133111eb;
    word ^= word >> 31;
    __builtin_memcpy(at + done, &word, std::min(nbytes - done, sizeof word));
  }
}

// Pseudo-random and without a period, so that a wrong offset shows in the result.
inline bytes noise(std::size_t nbytes, unsigned seed = 1) {
  bytes result(nbytes);
  fill_with_noise(result.data(), nbytes, std::uint64_t{seed} << 32);
  return result;
}

inline bytes read(const isthmus::buffer& from) {
  bytes result(from.size());
  isthmus::copy(std::span(result), from);
  return result;
}

inline void write(const isthmus::buffer& to, const bytes& data) {
  isthmus::copy(to, std::span(data));
}

// Reports where two byte strings first differ instead of printing both.
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

// Succeeds if the message contains each of `parts`: the rejected value, the limit.
inline ::testing::AssertionResult mentions(const std::string& message,
                                           const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    if (message.find(part) == std::string::npos) {
      return ::testing::AssertionFailure() << '"' << message << "\" does not tell " << part;
    }
  }
  return ::testing::AssertionSuccess();
}

// Succeeds if a call of the C ABI failed with status `want` and a message that contains `parts`.
inline ::testing::AssertionResult refused(isthmus_status_t got, isthmus_status_t want,
                                          const std::vector<std::string>& parts = {}) {
  if (got != want) {
    return ::testing::AssertionFailure()
           << isthmus_status_name(got) << " instead of " << isthmus_status_name(want) << ": "
           << isthmus_error_message();
  }
  return mentions(isthmus_error_message(), parts);
}

// Succeeds if a call of the C++ API threw an error of status `want` whose message contains `parts`.
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
    return mentions(problem.what(), parts);
  }
  return ::testing::AssertionFailure() << "nothing thrown, " << name(want) << " expected";
}
template <class Function>
::testing::AssertionResult throws(isthmus::status want, Function&& function) {
  return throws(want, {}, std::forward<Function>(function));
}

}  // namespace support
