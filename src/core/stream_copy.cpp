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
  auto* const destination_vectors = reinterpret_cast<__m128i*>(destination);
  const auto* const source_vectors = reinterpret_cast<const __m128i*>(source);
  const auto a = _mm_loadu_si128(source_vectors);
  const auto b = _mm_loadu_si128(source_vectors + 1);
  const auto c = _mm_loadu_si128(source_vectors + 2);
  const auto d = _mm_loadu_si128(source_vectors + 3);
  _mm_stream_si128(destination_vectors, a);
  _mm_stream_si128(destination_vectors + 1, b);
  _mm_stream_si128(destination_vectors + 2, c);
  _mm_stream_si128(destination_vectors + 3, d);
}

}  // namespace

void stream_copy(void* destination, const void* source, std::size_t nbytes) noexcept {
  // Sanitizers do not see streaming stores.
  if constexpr (k_address_sanitizer || k_thread_sanitizer) {
    std::memcpy(destination, source, nbytes);
    return;
  }
  auto* const destination_bytes = static_cast<std::byte*>(destination);
  const auto* const source_bytes = static_cast<const std::byte*>(source);
  const auto misalignment = address(destination_bytes) % k_cache_line;
  const auto head = std::min(nbytes, misalignment == 0 ? 0 : k_cache_line - misalignment);
  const auto lines = (nbytes - head) / k_cache_line * k_cache_line;
  std::memcpy(destination_bytes, source_bytes, head);
  for (std::size_t offset = head; offset < head + lines; offset += k_cache_line) {
    stream_line(destination_bytes + offset, source_bytes + offset);
  }
  std::memcpy(destination_bytes + head + lines, source_bytes + head + lines, nbytes - head - lines);
  _mm_sfence();  // only this orders streaming stores; the end of a thread does not
}

#else

void stream_copy(void* destination, const void* source, std::size_t nbytes) noexcept {
  std::memcpy(destination, source, nbytes);
}

#endif

}  // namespace isthmus
