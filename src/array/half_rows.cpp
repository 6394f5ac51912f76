// SPDX-License-Identifier: Apache-2.0
#include "array/half_rows.hpp"

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>
#include <isthmus/float16.hpp>

#include <cstdint>
#include <cstring>

namespace isthmus {
namespace {

constexpr std::size_t k_vector_elements = 8;

void convert_to_float16(std::byte* destination, const std::byte* source,
                        std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    float x;
    std::memcpy(&x, source + i * sizeof x, sizeof x);
    const float16 converted = x;
    std::memcpy(destination + i * sizeof converted, &converted, sizeof converted);
  }
}

void convert_to_float32(std::byte* destination, const std::byte* source,
                        std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    float16 x;
    std::memcpy(&x, source + i * sizeof x, sizeof x);
    const float converted = x;
    std::memcpy(destination + i * sizeof converted, &converted, sizeof converted);
  }
}

// The instructions convert signalling NaNs to quiet ones, so vectors with a NaN are converted
// without them.
[[gnu::target("avx,f16c")]] bool has_nan(__m256 values) noexcept {
  return _mm256_movemask_ps(_mm256_cmp_ps(values, values, _CMP_UNORD_Q)) != 0;
}

[[gnu::target("avx,f16c")]] void convert_to_float16_simd(std::byte* destination,
                                                         const std::byte* source,
                                                         std::size_t count) noexcept {
  std::size_t i = 0;
  for (; i + k_vector_elements <= count; i += k_vector_elements) {
    const auto values = _mm256_loadu_ps(reinterpret_cast<const float*>(source + i * sizeof(float)));
    auto* const output = destination + i * sizeof(float16);
    if (has_nan(values)) [[unlikely]] {
      convert_to_float16(output, source + i * sizeof(float), k_vector_elements);
    } else {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(output),
                       _mm256_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    }
  }
  convert_to_float16(destination + i * sizeof(float16), source + i * sizeof(float), count - i);
}

[[gnu::target("avx,f16c")]] void convert_to_float32_simd(std::byte* destination,
                                                         const std::byte* source,
                                                         std::size_t count) noexcept {
  std::size_t i = 0;
  for (; i + k_vector_elements <= count; i += k_vector_elements) {
    const auto* const input = source + i * sizeof(float16);
    const auto values = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(input)));
    auto* const output = destination + i * sizeof(float);
    if (has_nan(values)) [[unlikely]] {
      convert_to_float32(output, input, k_vector_elements);
    } else {
      _mm256_storeu_ps(reinterpret_cast<float*>(output), values);
    }
  }
  convert_to_float32(destination + i * sizeof(float), source + i * sizeof(float16), count - i);
}

// The check for AVX also checks that the operating system saves the wide registers.
bool processor_has_f16c() noexcept {
  static const bool result = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __builtin_cpu_supports("avx") != 0 && __get_cpuid(1, &a, &b, &c, &d) != 0 &&
           (c & bit_F16C) != 0;
  }();
  return result;
}

}  // namespace

HalfRow float16_row_converter() noexcept {
  return processor_has_f16c() ? &convert_to_float16_simd : nullptr;
}
HalfRow float32_row_converter() noexcept {
  return processor_has_f16c() ? &convert_to_float32_simd : nullptr;
}

}  // namespace isthmus

#else

namespace isthmus {

HalfRow float16_row_converter() noexcept { return nullptr; }
HalfRow float32_row_converter() noexcept { return nullptr; }

}  // namespace isthmus

#endif
