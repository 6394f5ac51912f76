// SPDX-License-Identifier: Apache-2.0
#pragma once
// Converts rows of 16-bit floats with the processor's instructions (x86's F16C): 16 Mi elements
// from float32 to float16 on two cores take 2.8 ms, with half.hpp's integer arithmetic 10
// (bench/micro/array_convert.py). Thread-safe.

#include <cstddef>

namespace isthmus {

using half_row = void (*)(std::byte* to, const std::byte* from, std::size_t count);

// From packed float32 to float16, and back. Null if the processor lacks the instructions. The
// results equal half.hpp's bit by bit, NaNs included. Elements need not be aligned.
[[nodiscard]] half_row float16_row_maker() noexcept;
[[nodiscard]] half_row float32_row_maker() noexcept;

}  // namespace isthmus
