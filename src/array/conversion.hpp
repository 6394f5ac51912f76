// SPDX-License-Identifier: Apache-2.0
#pragma once
// Conversions of elements from one dtype to another, as short sequences of steps over packed
// elements. Immutable, so thread-safe.
//
// Each conversion rounds at most once: all steps before the one that rounds are exact. A separate
// kernel for each of the 272 pairs would need four times the code.

#include <array>
#include <cstddef>

#include "array/dtype.hpp"

namespace isthmus {

struct Conversion {
  struct Step {
    void (*run)(std::byte* destination, const std::byte* source, std::size_t count) = nullptr;
    std::size_t bytes = 0;  // size of an element that the step produces
  };
  static constexpr std::size_t k_max_steps = 4;

  std::array<Step, k_max_steps> steps{};
  std::size_t count = 0;  // 0: the dtypes are equal
  // Number of bytes read from the beginning of each element. If the conversion discards the
  // imaginary component, only the real component is read.
  std::size_t read_bytes = 0;
  bool leaves_gaps = false;  // the padding bytes of a long double are not written
};

// Returns the conversion from `source_dtype` to `target_dtype`. Elements need not be aligned.
[[nodiscard]] Conversion conversion_of(Dtype target_dtype, Dtype source_dtype) noexcept;

}  // namespace isthmus
