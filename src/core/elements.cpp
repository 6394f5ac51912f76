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
template <std::size_t Bytes, std::ptrdiff_t Elements>
struct FixedStride {
  static constexpr std::ptrdiff_t bytes = static_cast<std::ptrdiff_t>(Bytes) * Elements;
};

template <std::size_t Bytes, class DestinationStride, class SourceStride>
void copy_one_by_one(const ElementRow& row, DestinationStride destination_stride,
                     SourceStride source_stride) noexcept {
  auto* __restrict destination = row.destination;
  const auto* __restrict source = row.source;
  const auto count = static_cast<std::ptrdiff_t>(row.count);
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    std::memcpy(destination + i * destination_stride.bytes, source + i * source_stride.bytes,
                Bytes);
  }
}

template <std::size_t Bytes, class DestinationStride>
void copy_unrolled(const ElementRow& row, DestinationStride destination_stride,
                   AnyStride<Bytes> source_stride) noexcept {
  auto* __restrict destination = row.destination;
  const auto* __restrict source = row.source;
  auto remaining = row.count;
  for (; remaining >= 4; remaining -= 4) {
    std::memcpy(destination, source, Bytes);
    std::memcpy(destination + destination_stride.bytes, source + source_stride.bytes, Bytes);
    std::memcpy(destination + 2 * destination_stride.bytes, source + 2 * source_stride.bytes,
                Bytes);
    std::memcpy(destination + 3 * destination_stride.bytes, source + 3 * source_stride.bytes,
                Bytes);
    destination += 4 * destination_stride.bytes;
    source += 4 * source_stride.bytes;
  }
  copy_one_by_one<Bytes>({destination, 0, source, 0, remaining}, destination_stride, source_stride);
}

template <std::size_t Bytes>
void copy_to_packed(const ElementRow& row) noexcept {
  constexpr auto k_bytes = static_cast<std::ptrdiff_t>(Bytes);
  constexpr FixedStride<Bytes, 1> packed;
  switch (row.source_stride) {
    case 0: return copy_one_by_one<Bytes>(row, packed, FixedStride<Bytes, 0>{});
    case -k_bytes: return copy_one_by_one<Bytes>(row, packed, FixedStride<Bytes, -1>{});
    case 2 * k_bytes: return copy_one_by_one<Bytes>(row, packed, FixedStride<Bytes, 2>{});
    default: return copy_unrolled<Bytes>(row, packed, AnyStride<Bytes>{row.source_stride});
  }
}

template <std::size_t Bytes>
void copy_fixed_size(const ElementRow& row) noexcept {
  if (is_packed(row.destination_stride, Bytes)) {
    copy_to_packed<Bytes>(row);
  } else {
    copy_unrolled<Bytes>(row, AnyStride<Bytes>{row.destination_stride},
                         AnyStride<Bytes>{row.source_stride});
  }
}

void copy_any_size(const ElementRow& row, std::size_t nbytes) noexcept {
  auto* destination = row.destination;
  const auto* source = row.source;
  for (std::size_t i = 0; i < row.count; ++i) {
    std::memcpy(destination, source, nbytes);
    destination += row.destination_stride;
    source += row.source_stride;
  }
}

}  // namespace

void copy_elements(const ElementRow& row, std::size_t nbytes) noexcept {
  if (is_packed(row.destination_stride, nbytes) && is_packed(row.source_stride, nbytes)) {
    std::memcpy(row.destination, row.source, row.count * nbytes);
    return;
  }
  switch (nbytes) {
    case 1: return copy_fixed_size<1>(row);
    case 2: return copy_fixed_size<2>(row);
    case 4: return copy_fixed_size<4>(row);
    case 8: return copy_fixed_size<8>(row);
    case 16: return copy_fixed_size<16>(row);
    case 32: return copy_fixed_size<32>(row);
    default: copy_any_size(row, nbytes);
  }
}

}  // namespace isthmus
