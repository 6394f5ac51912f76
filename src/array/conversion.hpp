// SPDX-License-Identifier: Apache-2.0
#pragma once
// The conversion of elements from one dtype to another, as a short sequence of steps over packed
// elements. Immutable, so thread-safe.
//
// Each conversion rounds at most once: all steps before the rounding one are exact. A kernel for
// each of the 272 pairs would need four times the code.

#include <array>
#include <cstddef>

#include "array/dtype.hpp"

namespace isthmus {

struct Conversion {
  struct Step {
    void (*run)(std::byte* destination, const std::byte* source, std::size_t count) = nullptr;
    std::size_t bytes = 0;  // of an element that the step produces
  };
  static constexpr std::size_t k_max_steps = 4;

  std::array<Step, k_max_steps> steps{};
  std::size_t count = 0;  // 0: the dtypes are equal
  // Bytes read of each element, from its beginning. If the imaginary component is dropped, only the
  // real component is read.
  std::size_t read_bytes = 0;
  bool leaves_gaps = false;  // some produced bytes are not written: the padding of a long double
};

// The conversion from one dtype to another. Elements need not be aligned.
[[nodiscard]] Conversion conversion_of(Dtype target_dtype, Dtype source_dtype) noexcept;

}  // namespace isthmus
