// SPDX-License-Identifier: Apache-2.0
#include "core/elements.hpp"

#include <cstring>

namespace isthmus {
namespace {

// A constant stride lets the compiler move several elements at once. With a variable stride, four
// elements per iteration keep the processor busy.
template <std::size_t Bytes>
struct AnyStride {
  std::ptrdiff_t bytes;
};
template <std::size_t Bytes, std::ptrdiff_t Times>
struct FixedStride {
  static constexpr std::ptrdiff_t bytes = static_cast<std::ptrdiff_t>(Bytes) * Times;
};

template <std::size_t Bytes, class ToStride, class FromStride>
void copy_each(const ElementRow& row, ToStride to_stride, FromStride from_stride) noexcept {
  auto* __restrict to = row.to;
  const auto* __restrict from = row.from;
  const auto count = static_cast<std::ptrdiff_t>(row.count);
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    std::memcpy(to + i * to_stride.bytes, from + i * from_stride.bytes, Bytes);
  }
}

template <std::size_t Bytes, class ToStride>
void copy_four_each(const ElementRow& row, ToStride to_stride, AnyStride<Bytes> stride) noexcept {
  auto* __restrict to = row.to;
  const auto* __restrict from = row.from;
  auto left = row.count;
  for (; left >= 4; left -= 4) {
    std::memcpy(to, from, Bytes);
    std::memcpy(to + to_stride.bytes, from + stride.bytes, Bytes);
    std::memcpy(to + 2 * to_stride.bytes, from + 2 * stride.bytes, Bytes);
    std::memcpy(to + 3 * to_stride.bytes, from + 3 * stride.bytes, Bytes);
    to += 4 * to_stride.bytes;
    from += 4 * stride.bytes;
  }
  copy_each<Bytes>({to, 0, from, 0, left}, to_stride, stride);
}

template <std::size_t Bytes>
void gather(const ElementRow& row) noexcept {
  constexpr auto k_bytes = static_cast<std::ptrdiff_t>(Bytes);
  constexpr FixedStride<Bytes, 1> packed;
  switch (row.from_stride) {
    case 0: return copy_each<Bytes>(row, packed, FixedStride<Bytes, 0>{});
    case -k_bytes: return copy_each<Bytes>(row, packed, FixedStride<Bytes, -1>{});
    case 2 * k_bytes: return copy_each<Bytes>(row, packed, FixedStride<Bytes, 2>{});
    default: return copy_four_each<Bytes>(row, packed, AnyStride<Bytes>{row.from_stride});
  }
}

template <std::size_t Bytes>
void copy_of(const ElementRow& row) noexcept {
  if (is_packed(row.to_stride, Bytes)) {
    gather<Bytes>(row);
  } else {
    copy_four_each<Bytes>(row, AnyStride<Bytes>{row.to_stride}, AnyStride<Bytes>{row.from_stride});
  }
}

void copy_any(const ElementRow& row, std::size_t nbytes) noexcept {
  auto* to = row.to;
  const auto* from = row.from;
  for (std::size_t i = 0; i < row.count; ++i) {
    std::memcpy(to, from, nbytes);
    to += row.to_stride;
    from += row.from_stride;
  }
}

}  // namespace

void copy_elements(const ElementRow& row, std::size_t nbytes) noexcept {
  if (is_packed(row.to_stride, nbytes) && is_packed(row.from_stride, nbytes)) {
    std::memcpy(row.to, row.from, row.count * nbytes);
    return;
  }
  switch (nbytes) {
    case 1: return copy_of<1>(row);
    case 2: return copy_of<2>(row);
    case 4: return copy_of<4>(row);
    case 8: return copy_of<8>(row);
    case 16: return copy_of<16>(row);
    case 32: return copy_of<32>(row);
    default: copy_any(row, nbytes);
  }
}

}  // namespace isthmus
