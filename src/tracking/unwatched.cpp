// SPDX-License-Identifier: Apache-2.0
#include "tracking/unwatched.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/sanitizers.hpp"

namespace isthmus::tracking {
namespace {

// ThreadSanitizer intercepts memcpy and memcmp, so in its builds bytes are processed one by one.
// The pointers are volatile because the compiler would otherwise replace these loops by such calls.
[[maybe_unused]] __attribute__((no_sanitize("thread"))) void copy_bytewise(
    volatile std::byte* destination, const volatile std::byte* source,
    std::size_t nbytes) noexcept {
  for (std::size_t at = 0; at < nbytes; ++at) {
    destination[at] = source[at];
  }
}

__attribute__((no_sanitize("thread"))) std::size_t first_difference(const volatile std::byte* one,
                                                                    const volatile std::byte* other,
                                                                    std::size_t nbytes) noexcept {
  std::size_t at = 0;
  while (at < nbytes && one[at] == other[at]) {
    ++at;
  }
  return at;
}

__attribute__((no_sanitize("thread"))) std::size_t first_equality(const volatile std::byte* one,
                                                                  const volatile std::byte* other,
                                                                  std::size_t nbytes) noexcept {
  std::size_t at = 0;
  while (at < nbytes && one[at] != other[at]) {
    ++at;
  }
  return at;
}

}  // namespace

void copy_unwatched(void* destination, const void* source, std::size_t nbytes) noexcept {
  if constexpr (k_thread_sanitizer) {
    copy_bytewise(static_cast<std::byte*>(destination), static_cast<const std::byte*>(source),
                  nbytes);
  } else {
    std::memcpy(destination, source, nbytes);
  }
}

bool same_unwatched(const void* one, const void* other, std::size_t nbytes) noexcept {
  if constexpr (k_thread_sanitizer) {
    return first_difference(static_cast<const std::byte*>(one),
                            static_cast<const std::byte*>(other), nbytes) == nbytes;
  } else {
    return std::memcmp(one, other, nbytes) == 0;
  }
}

void add_differences(const std::byte* one, const std::byte* other, std::size_t nbytes,
                     std::size_t first, RangeSet& differing) {
  constexpr std::size_t k_block_bytes = 256;
  for (std::size_t block = 0; block < nbytes; block += k_block_bytes) {
    const auto end = std::min(nbytes, block + k_block_bytes);
    if (same_unwatched(one + block, other + block, end - block)) {
      continue;
    }
    for (auto at = block; at < end;) {
      at += first_difference(one + at, other + at, end - at);
      const auto run = first_equality(one + at, other + at, end - at);
      differing.add(ByteRange{first + at, first + at + run});
      at += run;
    }
  }
}

}  // namespace isthmus::tracking
