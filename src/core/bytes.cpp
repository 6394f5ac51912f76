#include "core/bytes.hpp"

#include <algorithm>
#include <cstring>

#include "core/share_out.hpp"
#include "core/sizes.hpp"
#include "core/stream_copy.hpp"

namespace isthmus {

void copy_bytes(void* destination, const void* source, std::size_t nbytes) noexcept {
  if (nbytes < k_large_bytes) {
    std::memcpy(destination, source, nbytes);
    return;
  }
  share_out(nbytes, [to = static_cast<std::byte*>(destination),
                     from = static_cast<const std::byte*>(source)](std::size_t at, std::size_t n) {
    stream_copy(to + at, from + at, n);
  });
}

namespace {

// The size is a constant, so that each is one load and one store.
template <std::size_t Width>
void copy_column(const copy_2d_shape& shape) noexcept {
  auto* const to = static_cast<std::byte*>(shape.destination);
  const auto* const from = static_cast<const std::byte*>(shape.source);
  for (std::size_t row = 0; row < shape.height; ++row) {
    std::memcpy(to + row * shape.destination_pitch, from + row * shape.source_pitch, Width);
  }
}

void copy_wide_rows(const copy_2d_shape& shape) noexcept {
  auto* to = static_cast<std::byte*>(shape.destination);
  const auto* from = static_cast<const std::byte*>(shape.source);
  for (std::size_t row = 0; row < shape.height; ++row) {
    copy_bytes(to, from, shape.width);
    to += shape.destination_pitch;
    from += shape.source_pitch;
  }
}

}  // namespace

void copy_rows(const copy_2d_shape& shape) noexcept {
  switch (shape.width) {
    case 1: return copy_column<1>(shape);
    case 2: return copy_column<2>(shape);
    case 4: return copy_column<4>(shape);
    case 8: return copy_column<8>(shape);
    case 16: return copy_column<16>(shape);
    default: copy_wide_rows(shape);
  }
}

void copy_ranges(const ranged_copy& what) noexcept {
  for (const auto& each : what.ranges) {
    copy_bytes(advance(what.destination, each.destination_offset),
               advance(what.source, each.source_offset), each.nbytes);
  }
}

namespace {

void fill_piece(std::byte* to, const fill_pattern& pattern, std::size_t nbytes) noexcept {
  if (pattern.nbytes == 1) {
    std::memset(to, std::to_integer<int>(pattern.bytes[0]), nbytes);
    return;
  }
  // What is filled is the source of the rest; 4 KiB stay in the first cache.
  constexpr std::size_t k_longest_run = 4096;
  std::size_t done = std::min(pattern.nbytes, nbytes);
  std::memcpy(to, pattern.bytes, done);
  while (done < nbytes) {
    const auto run = std::min({done, nbytes - done, k_longest_run});
    std::memcpy(to + done, to, run);
    done += run;
  }
}

}  // namespace

void fill_bytes(void* destination, const fill_pattern& pattern, std::size_t nbytes) noexcept {
  auto* to = static_cast<std::byte*>(destination);
  if (nbytes < k_large_bytes) {
    fill_piece(to, pattern, nbytes);
    return;
  }
  share_out(nbytes, [to, &pattern](std::size_t at, std::size_t n) {  // pieces hold whole patterns
    fill_piece(to + at, pattern, n);
  });
}

}  // namespace isthmus
