// SPDX-License-Identifier: Apache-2.0
#include "core/bytes.hpp"

#include <algorithm>
#include <cstring>

#include "core/elements.hpp"
#include "core/expects.hpp"
#include "core/share_out.hpp"
#include "core/sizes.hpp"
#include "core/stream_copy.hpp"

namespace isthmus {

void copy_bytes(void* destination, const void* source, std::size_t nbytes) noexcept {
  if (nbytes < k_large_bytes) {
    std::memcpy(destination, source, nbytes);
    return;
  }
  share_out(nbytes, [destination_bytes = static_cast<std::byte*>(destination),
                     source_bytes = static_cast<const std::byte*>(source)](std::size_t begin,
                                                                           std::size_t n) {
    stream_copy(destination_bytes + begin, source_bytes + begin, n);
  });
}

namespace {

// Wider rows are copied with one memcpy each.
constexpr std::size_t k_max_element_bytes = 32;
// When a copy as a whole exceeds the caches, its rows and ranges of at least this size bypass them.
constexpr std::size_t k_min_streamed_bytes = std::size_t{4} << 10;

void copy_run(std::byte* destination, const std::byte* source, std::size_t nbytes,
              bool bypass_caches) noexcept {
  if (bypass_caches && nbytes >= k_min_streamed_bytes) {
    stream_copy(destination, source, nbytes);
  } else {
    std::memcpy(destination, source, nbytes);
  }
}

void copy_wide_rows(const Copy2dShape& shape, bool bypass_caches) noexcept {
  auto* destination = static_cast<std::byte*>(shape.destination);
  const auto* source = static_cast<const std::byte*>(shape.source);
  for (std::size_t row = 0; row < shape.height; ++row) {
    copy_run(destination, source, shape.width, bypass_caches);
    destination += shape.destination_pitch;
    source += shape.source_pitch;
  }
}

// Copies row by row. Each row is so large that `copy_bytes` uses several threads for it.
void copy_large_rows(const Copy2dShape& shape) noexcept {
  for (std::size_t row = 0; row < shape.height; ++row) {
    copy_bytes(advance(shape.destination, row * shape.destination_pitch),
               advance(shape.source, row * shape.source_pitch), shape.width);
  }
}

}  // namespace

void copy_rows_on_this_thread(const Copy2dShape& shape, bool bypass_caches) noexcept {
  if (shape.width > k_max_element_bytes) {
    copy_wide_rows(shape, bypass_caches);
    return;
  }
  copy_elements({static_cast<std::byte*>(shape.destination),
                 static_cast<std::ptrdiff_t>(shape.destination_pitch),
                 static_cast<const std::byte*>(shape.source),
                 static_cast<std::ptrdiff_t>(shape.source_pitch), shape.height},
                shape.width);
}

void copy_rows(const Copy2dShape& shape) noexcept {
  if (shape.width >= k_large_bytes) {
    copy_large_rows(shape);
    return;
  }
  const auto total = shape.width * shape.height;
  if (total < k_large_bytes) {
    copy_rows_on_this_thread(shape, false);
    return;
  }
  share_out(total, [&shape](std::size_t begin, std::size_t n) {
    const auto first = begin / shape.width;
    copy_rows_on_this_thread(
        {advance(shape.destination, first * shape.destination_pitch), shape.destination_pitch,
         advance(shape.source, first * shape.source_pitch), shape.source_pitch, shape.width,
         (begin + n) / shape.width - first},
        true);
  });
}

namespace {

void copy_small_ranges(const RangedCopy& copy, std::size_t first, std::size_t last,
                       bool bypass_caches) noexcept {
  for (const auto& range : copy.ranges.subspan(first, last - first)) {
    if (range.nbytes >= k_large_bytes) {
      continue;
    }
    copy_run(advance(copy.destination, range.destination_offset),
             advance(copy.source, range.source_offset), range.nbytes, bypass_caches);
  }
}

}  // namespace

// Each large range is copied by several threads. The other ranges are divided among the threads.
void copy_ranges(const RangedCopy& copy) noexcept {
  const auto count = copy.ranges.size();
  std::size_t small_bytes = 0;
  for (const auto& range : copy.ranges) {
    if (range.nbytes >= k_large_bytes) {
      copy_bytes(advance(copy.destination, range.destination_offset),
                 advance(copy.source, range.source_offset), range.nbytes);
    } else {
      small_bytes += range.nbytes;
    }
  }
  if (small_bytes < k_large_bytes) {
    copy_small_ranges(copy, 0, count, false);
    return;
  }
  // Divides the list by indices in proportion to the bytes. As integers the products could
  // overflow.
  share_out(small_bytes, [&](std::size_t begin, std::size_t n) {
    const auto index_of = [&](std::size_t byte) {
      return static_cast<std::size_t>(static_cast<double>(byte) / static_cast<double>(small_bytes) *
                                      static_cast<double>(count));
    };
    copy_small_ranges(copy, index_of(begin), begin + n == small_bytes ? count : index_of(begin + n),
                      true);
  });
}

namespace {

void fill_chunk(std::byte* destination, const FillPattern& pattern, std::size_t nbytes) noexcept {
  if (pattern.nbytes == 1) {
    std::memset(destination, std::to_integer<int>(pattern.bytes[0]), nbytes);
    return;
  }
  // The filled part is the source of the rest. Sources of up to 4 KiB fit the L1 cache.
  constexpr std::size_t k_max_chunk = 4096;
  std::size_t filled = std::min(pattern.nbytes, nbytes);
  std::memcpy(destination, pattern.bytes, filled);
  while (filled < nbytes) {
    const auto chunk = std::min({filled, nbytes - filled, k_max_chunk});
    std::memcpy(destination + filled, destination, chunk);
    filled += chunk;
  }
}

}  // namespace

void fill_bytes(void* destination, const FillPattern& pattern, std::size_t nbytes) noexcept {
  ISTHMUS_EXPECTS(nbytes % pattern.nbytes == 0, nbytes, pattern.nbytes);
  auto* destination_bytes = static_cast<std::byte*>(destination);
  if (nbytes < k_large_bytes) {
    fill_chunk(destination_bytes, pattern, nbytes);
    return;
  }
  share_out(nbytes, [destination_bytes, &pattern](std::size_t begin,
                                                  std::size_t n) {  // chunks hold whole patterns
    fill_chunk(destination_bytes + begin, pattern, n);
  });
}

}  // namespace isthmus
