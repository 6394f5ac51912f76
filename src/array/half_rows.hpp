// SPDX-License-Identifier: Apache-2.0
#pragma once
// Converts rows of 16-bit floats with the processor's instructions (x86's F16C). Converting 16 Mi
// elements from float32 to float16 on two cores takes 2.8 ms, and 10 ms with the integer arithmetic
// of isthmus/float16.hpp (bench/micro/array_convert.py). Thread-safe.

#include <cstddef>

namespace isthmus {

using HalfRow = void (*)(std::byte* destination, const std::byte* source, std::size_t count);

// Return functions that convert packed elements: float32 to float16, and float16 to float32. Null
// if the processor lacks the instructions. The results are bitwise equal to those of float16,
// including NaNs. Elements need not be aligned.
[[nodiscard]] HalfRow float16_row_converter() noexcept;
[[nodiscard]] HalfRow float32_row_converter() noexcept;

}  // namespace isthmus
