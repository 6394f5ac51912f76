#include "array/elements.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace isthmus {
namespace {

// Where one side is packed its stride is a constant, which is what lets the loop go on with the
// other's alone.
template <std::size_t Bytes, bool ToPacked, bool FromPacked>
void copy_each(const element_row& row) noexcept {
  constexpr auto k_bytes = static_cast<std::ptrdiff_t>(Bytes);
  const auto to_stride = ToPacked ? k_bytes : row.to_stride;
  const auto from_stride = FromPacked ? k_bytes : row.from_stride;
  auto* __restrict to = row.to;
  const auto* __restrict from = row.from;
  const auto count = static_cast<std::ptrdiff_t>(row.count);
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    std::memcpy(to + i * to_stride, from + i * from_stride, Bytes);
  }
}

template <std::size_t Bytes>
void copy_of(const element_row& row) noexcept {
  constexpr auto k_bytes = static_cast<std::ptrdiff_t>(Bytes);
  if (row.to_stride == k_bytes) {
    copy_each<Bytes, true, false>(row);
  } else if (row.from_stride == k_bytes) {
    copy_each<Bytes, false, true>(row);
  } else {
    copy_each<Bytes, false, false>(row);
  }
}

void copy_any(const element_row& row, std::size_t nbytes) noexcept {
  auto* to = row.to;
  const auto* from = row.from;
  for (std::size_t i = 0; i < row.count; ++i) {
    std::memcpy(to, from, nbytes);
    to += row.to_stride;
    from += row.from_stride;
  }
}

// One element over and over again: what is written is the source of the rest; 4 KiB stay in the
// first cache.
void repeat(const element_row& row, std::size_t nbytes) noexcept {
  const auto all = row.count * nbytes;
  std::size_t done = nbytes;
  std::memcpy(row.to, row.from, nbytes);
  while (done < all) {
    const auto run = std::min({done, all - done, std::max<std::size_t>(4096 / nbytes, 1) * nbytes});
    std::memcpy(row.to + done, row.to, run);
    done += run;
  }
}

// Elements of one step that stay in the first cache.
constexpr std::size_t k_block = 256;
using block = std::array<std::byte, k_block * k_largest_element>;

bool is_packed(std::ptrdiff_t stride, std::size_t nbytes) noexcept {
  return stride == static_cast<std::ptrdiff_t>(nbytes);
}

}  // namespace

void copy_elements(const element_row& row, std::size_t nbytes) noexcept {
  if (is_packed(row.to_stride, nbytes) && is_packed(row.from_stride, nbytes)) {
    std::memcpy(row.to, row.from, row.count * nbytes);
    return;
  }
  if (row.from_stride == 0 && is_packed(row.to_stride, nbytes)) {
    repeat(row, nbytes);
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

namespace {

// Of at most a block.
void convert_block(const element_row& row, const conversion& how, std::size_t to_bytes) noexcept {
  alignas(64) block one;
  alignas(64) block other;
  const auto* from = row.from;
  auto* free = one.data();
  auto* next = other.data();
  if (!is_packed(row.from_stride, how.read_bytes)) {
    copy_elements(
        {free, static_cast<std::ptrdiff_t>(how.read_bytes), from, row.from_stride, row.count},
        how.read_bytes);
    from = free;
    std::swap(free, next);
  }
  const bool ends_packed = is_packed(row.to_stride, to_bytes);
  for (std::size_t i = 0; i < how.count; ++i) {
    auto* const to = ends_packed && i + 1 == how.count ? row.to : free;
    how.steps.at(i).run(to, from, row.count);
    from = to;
    std::swap(free, next);
  }
  if (!ends_packed) {
    copy_elements({row.to, row.to_stride, from, static_cast<std::ptrdiff_t>(to_bytes), row.count},
                  to_bytes);
  }
}

}  // namespace

void convert_elements(const element_row& row, const conversion& how,
                      std::size_t to_bytes) noexcept {
  if (how.count == 0) {
    copy_elements(row, to_bytes);
    return;
  }
  const bool is_one_pass = how.count == 1 && is_packed(row.from_stride, how.read_bytes) &&
                           is_packed(row.to_stride, to_bytes);
  if (is_one_pass) {
    how.steps[0].run(row.to, row.from, row.count);
    return;
  }
  for (std::size_t done = 0; done < row.count; done += k_block) {
    const auto at = static_cast<std::ptrdiff_t>(done);
    convert_block({row.to + at * row.to_stride, row.to_stride, row.from + at * row.from_stride,
                   row.from_stride, std::min(k_block, row.count - done)},
                  how, to_bytes);
  }
}

}  // namespace isthmus
