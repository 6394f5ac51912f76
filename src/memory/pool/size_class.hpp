// SPDX-License-Identifier: Apache-2.0
#pragma once
// Size classes: the sizes that a pool rounds small requests up to.
//
// The first classes have 1 to 8 units; after them there are eight classes per doubling. At most an
// eighth of a block is lost, 6 % on average for sizes spread evenly over a doubling. The blocks of
// a class begin at multiples of its size in a slab, so they are aligned to the largest power of two
// that divides it.

#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/expects.hpp"
#include "core/sizes.hpp"

namespace isthmus {

class SizeClasses {
 public:
  static constexpr std::size_t k_largest = std::size_t{256} << 10;
  // Two cache lines, which processors fetch together. A smaller unit would cost the host more
  // metadata than 0.4 % of the memory.
  static constexpr std::size_t k_smallest_unit = 128;
  static constexpr std::size_t k_largest_unit = 4096;
  static constexpr unsigned k_max_count = 72;  // classes with the smallest unit

  constexpr explicit SizeClasses(std::size_t unit) noexcept
      : shift_{static_cast<unsigned>(std::countr_zero(unit))} {
    ISTHMUS_EXPECTS(is_power_of_two(unit), unit);
    ISTHMUS_EXPECTS(k_smallest_unit <= unit && unit <= k_largest_unit, unit);
  }

  [[nodiscard]] constexpr std::size_t unit() const noexcept { return std::size_t{1} << shift_; }
  [[nodiscard]] constexpr unsigned count() const noexcept { return class_of(k_largest) + 1; }

  [[nodiscard]] constexpr unsigned class_of(std::size_t nbytes) const noexcept {
    ISTHMUS_EXPECTS(0 < nbytes && nbytes <= k_largest, nbytes);
    const auto last = (nbytes - 1) >> shift_;  // the unit that holds the last byte
    if (last < k_steps) {
      return static_cast<unsigned>(last);
    }
    const auto doubling = static_cast<unsigned>(std::bit_width(last)) - 4;
    return doubling * k_steps + static_cast<unsigned>(last >> doubling);
  }

  [[nodiscard]] constexpr std::size_t bytes_of(unsigned size_class) const noexcept {
    if (size_class < k_steps) {
      return (std::size_t{size_class} + 1) << shift_;
    }
    const auto doubling = size_class / k_steps - 1;
    const std::size_t step = size_class % k_steps + k_steps;
    return (step + 1) << doubling << shift_;
  }

  // The smallest class for `nbytes` whose blocks have that alignment.
  [[nodiscard]] constexpr unsigned class_of(std::size_t nbytes,
                                            std::size_t alignment) const noexcept {
    ISTHMUS_EXPECTS(is_power_of_two(alignment) && alignment <= k_largest, alignment);
    auto found = class_of(nbytes < alignment ? alignment : nbytes);
    while (bytes_of(found) % alignment != 0) {  // at most seven times: a doubling begins aligned
      ++found;
    }
    return found;
  }

 private:
  static constexpr unsigned k_steps = 8;
  unsigned shift_;
};

static_assert(SizeClasses{SizeClasses::k_smallest_unit}.count() == SizeClasses::k_max_count);

}  // namespace isthmus
