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

void copy_rows(const copy_2d_shape& shape) noexcept {
  auto* to = static_cast<std::byte*>(shape.destination);
  const auto* from = static_cast<const std::byte*>(shape.source);
  for (std::size_t row = 0; row < shape.height; ++row) {
    copy_bytes(to, from, shape.width);
    to += shape.destination_pitch;
    from += shape.source_pitch;
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
