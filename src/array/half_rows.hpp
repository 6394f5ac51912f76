// SPDX-License-Identifier: Apache-2.0
#pragma once
// Converts rows of 16-bit floats with the processor's instructions (x86's F16C): 16 Mi elements
// from float32 to float16 on two cores take 2.8 ms, with half.hpp's integer arithmetic 10
// (bench/micro/array_convert.py). Thread-safe.

#include <cstddef>

namespace isthmus {

using HalfRow = void (*)(std::byte* destination, const std::byte* source, std::size_t count);

// From packed float32 to float16, and back. Null if the processor lacks the instructions. The
// results equal half.hpp's bit by bit, NaNs included. Elements need not be aligned.
[[nodiscard]] HalfRow float16_row_converter() noexcept;
[[nodiscard]] HalfRow float32_row_converter() noexcept;

}  // namespace isthmus
