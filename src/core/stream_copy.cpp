// SPDX-License-Identifier: Apache-2.0
#include "core/stream_copy.hpp"

#include <algorithm>
#include <cstring>

#include "core/sanitizers.hpp"
#include "core/sizes.hpp"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace isthmus {

#if defined(__SSE2__)

namespace {

constexpr std::size_t k_cache_line = 64;

void stream_line(std::byte* destination, const std::byte* source) noexcept {
  auto* const target = reinterpret_cast<__m128i*>(destination);
  const auto* const parts = reinterpret_cast<const __m128i*>(source);
  const auto a = _mm_loadu_si128(parts);
  const auto b = _mm_loadu_si128(parts + 1);
  const auto c = _mm_loadu_si128(parts + 2);
  const auto d = _mm_loadu_si128(parts + 3);
  _mm_stream_si128(target, a);
  _mm_stream_si128(target + 1, b);
  _mm_stream_si128(target + 2, c);
  _mm_stream_si128(target + 3, d);
}

}  // namespace

void stream_copy(void* destination, const void* source, std::size_t nbytes) noexcept {
  if constexpr (k_address_sanitizer ||
                k_thread_sanitizer) {  // sanitizers do not see streaming stores
    std::memcpy(destination, source, nbytes);
    return;
  }
  auto* const to = static_cast<std::byte*>(destination);
  const auto* const from = static_cast<const std::byte*>(source);
  const auto past = address(to) % k_cache_line;
  const auto head = std::min(nbytes, past == 0 ? 0 : k_cache_line - past);
  const auto lines = (nbytes - head) / k_cache_line * k_cache_line;
  std::memcpy(to, from, head);
  for (std::size_t at = head; at < head + lines; at += k_cache_line) {
    stream_line(to + at, from + at);
  }
  std::memcpy(to + head + lines, from + head + lines, nbytes - head - lines);
  _mm_sfence();  // only this orders streaming stores; the end of a thread does not
}

#else

void stream_copy(void* destination, const void* source, std::size_t nbytes) noexcept {
  std::memcpy(destination, source, nbytes);
}

#endif

}  // namespace isthmus
