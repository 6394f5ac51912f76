#pragma once
// Rows of 16-bit floats by the processor's own instructions (x86's F16C): 16 Mi of float32 to
// float16 on two cores in 2.8 ms, which half.hpp's integers take 10 for
// (bench/micro/array_convert.py).

#include <cstddef>

namespace isthmus {

using half_row = void (*)(std::byte* to, const std::byte* from, std::size_t count);

// To float16 from packed float32, and back; null where the processor has no such instructions. Bit
// by bit what half.hpp gives, NaNs included. Elements need not be aligned.
[[nodiscard]] half_row float16_row_maker() noexcept;
[[nodiscard]] half_row float32_row_maker() noexcept;

}  // namespace isthmus
