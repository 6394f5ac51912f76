// SPDX-License-Identifier: Apache-2.0
// Conversions between all pairs of dtypes, compared with a model that computes in long double.
// Covers all bit patterns of the short dtypes; of the others special values, neighbours of limits,
// halfway cases between two representable numbers, and random bits.
#include "array/conversion.hpp"

#include <gtest/gtest.h>
#include <isthmus/float16.hpp>

#include <bit>
#include <numeric>
#include <random>
#include <vector>

#include "array/elements.hpp"
#include "array/half_rows.hpp"
#include "values.hpp"

namespace {

using namespace isthmus;
using bytes = std::vector<std::byte>;

template <class T>
void append(bytes& to, const T& value) {
  const auto at = to.size();
  to.resize(at + sizeof value);
  std::memcpy(to.data() + at, &value, sizeof value);
}

constexpr int k_noise = 20'000;

template <class Integer>
bytes integers() {
  bytes all;
  std::mt19937_64 random(1);
  for (int bit = 0; bit < static_cast<int>(sizeof(Integer) * 8); ++bit) {
    for (const std::int64_t by : {-1, 0, 1}) {
      append(all, static_cast<Integer>((std::uint64_t{1} << bit) + static_cast<std::uint64_t>(by)));
      append(all, static_cast<Integer>(static_cast<std::uint64_t>(by) - (std::uint64_t{1} << bit)));
      // Halfway cases for 8, 11, 24 and 53 significant digits, and their neighbours.
      for (const int digits : {8, 11, 24, 53}) {
        const int half = std::max(0, bit - digits);
        append(all, static_cast<Integer>((std::uint64_t{1} << bit) + (std::uint64_t{1} << half) +
                                         static_cast<std::uint64_t>(by)));
      }
    }
  }
  for (int i = 0; i < k_noise; ++i) append(all, static_cast<Integer>(random() >> random() % 64));
  return all;
}

template <class Float>
std::vector<Float> floats() {
  using limits = std::numeric_limits<Float>;
  std::vector<Float> all{0,
                         limits::quiet_NaN(),
                         limits::signaling_NaN(),
                         limits::infinity(),
                         limits::max(),
                         limits::min(),
                         limits::denorm_min(),
                         limits::min() / 3,
                         Float(0.5),
                         Float(1.5),
                         Float(2.5)};
  // Neighbours of integer limits, and halfway cases for 8, 11 and 24 significant digits.
  for (int bit = -150; bit <= 64; ++bit) {
    if (std::ldexp(Float{1}, bit) == 0) continue;
    for (const int digits : {8, 11, 24, 53}) {
      const Float middle = std::ldexp(Float{1}, bit) + std::ldexp(Float{1}, bit - digits);
      for (const Float x : {std::ldexp(Float{1}, bit), middle, middle + middle - 1, middle - 1,
                            middle + Float(0.5)}) {
        all.insert(all.end(), {x, std::nextafter(x, Float{0}), std::nextafter(x, limits::max())});
      }
    }
  }
  std::mt19937_64 random(2);
  for (int i = 0; i < k_noise; ++i) {
    const auto digits = static_cast<Float>(random()) / static_cast<Float>(1e19);
    all.push_back(std::ldexp(digits, static_cast<int>(random() % 330) - 170));
  }
  for (std::size_t i = all.size(); i-- > 0;) all.push_back(-all[i]);
  return all;
}

template <class Float>
bytes real() {
  bytes all;
  for (const Float x : floats<Float>()) append(all, x);
  return all;
}

template <class Float>
bytes complex() {
  bytes all;
  const auto values = floats<Float>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    append(all, values[i]);
    append(all, i % 3 == 0 ? Float{0} : values[values.size() - 1 - i]);
  }
  return all;
}

bytes all_short() {
  bytes all;
  for (unsigned bits = 0; bits < 0x10000; ++bits) append(all, static_cast<std::uint16_t>(bits));
  return all;
}

bytes elements_of(Dtype of) {
  switch (of) {
    case ISTHMUS_BOOL:
    case ISTHMUS_INT8:
    case ISTHMUS_UINT8: {
      bytes all;
      for (unsigned bits = 0; bits < 0x100; ++bits) append(all, static_cast<std::uint8_t>(bits));
      return all;
    }
    case ISTHMUS_INT16:
    case ISTHMUS_UINT16:
    case ISTHMUS_FLOAT16:
    case ISTHMUS_BFLOAT16: return all_short();
    case ISTHMUS_INT32:
    case ISTHMUS_UINT32: return integers<std::uint32_t>();
    case ISTHMUS_INT64:
    case ISTHMUS_UINT64: return integers<std::uint64_t>();
    case ISTHMUS_FLOAT32: return real<float>();
    case ISTHMUS_FLOAT64: return real<double>();
    case ISTHMUS_LONGDOUBLE: return real<long double>();
    case ISTHMUS_COMPLEX64: return complex<float>();
    case ISTHMUS_COMPLEX128: return complex<double>();
    default: return complex<long double>();
  }
}

class conversions : public ::testing::TestWithParam<Dtype> {};
INSTANTIATE_TEST_SUITE_P(from, conversions, ::testing::Range(1, static_cast<int>(k_dtypes) + 1),
                         [](const auto& given) { return facts_of(given.param).name; });

TEST_P(conversions, are_as_the_model_has_them) {
  if (std::numeric_limits<long double>::digits < 64) GTEST_SKIP() << "the model needs 64 digits";
  const Dtype from = GetParam();
  const auto from_item = facts_of(from).nbytes;
  const bytes given = elements_of(from);
  const auto count = given.size() / from_item;
  for (Dtype to = 1; to <= static_cast<Dtype>(k_dtypes); ++to) {
    const auto to_item = facts_of(to).nbytes;
    bytes got(count * to_item);
    convert_elements({got.data(), static_cast<std::ptrdiff_t>(to_item), given.data(),
                      static_cast<std::ptrdiff_t>(from_item), count},
                     conversion_of(to, from), to_item);
    if (to == from) {
      EXPECT_EQ(std::memcmp(got.data(), given.data(), got.size()), 0);
      continue;
    }
    int wrong = 0;
    for (std::size_t i = 0; i < count && wrong < 5; ++i) {
      const auto* const is = got.data() + i * to_item;
      const auto* const was = given.data() + i * from_item;
      if (values::is_conversion(to, is, from, was)) continue;
      ++wrong;
      const auto x = values::decode(from, was);
      const auto y = values::decode(to, is);
      ADD_FAILURE() << facts_of(from).name << " to " << facts_of(to).name << ": " << std::hexfloat
                    << x.real << " " << x.imaginary << " became " << y.real << " " << y.imaginary;
    }
  }
}

// The result is the same for any strides, alignment and number of elements.
TEST_P(conversions, of_elements_that_lie_apart) {
  const Dtype from = GetParam();
  const auto from_item = static_cast<std::ptrdiff_t>(facts_of(from).nbytes);
  const bytes given = elements_of(from);
  for (Dtype to = 1; to <= static_cast<Dtype>(k_dtypes); ++to) {
    const auto to_item = static_cast<std::ptrdiff_t>(facts_of(to).nbytes);
    const auto how = conversion_of(to, from);
    for (const std::ptrdiff_t count : {1, 3, 255, 256, 257, 700}) {
      const auto usable = std::min(count, static_cast<std::ptrdiff_t>(given.size()) / from_item);
      const auto n = static_cast<std::size_t>(usable);
      bytes packed(n * static_cast<std::size_t>(to_item));
      convert_elements({packed.data(), to_item, given.data(), from_item, n}, how,
                       static_cast<std::size_t>(to_item));
      const auto to_stride = to_item + 3;
      const auto from_stride = from_item + 1;
      bytes apart(n * static_cast<std::size_t>(from_stride) + 1);
      bytes got(n * static_cast<std::size_t>(to_stride) + 1);
      const auto at = [](std::ptrdiff_t i, std::ptrdiff_t stride) { return 1 + i * stride; };
      for (std::ptrdiff_t i = 0; i < usable; ++i) {
        std::memcpy(apart.data() + at(i, from_stride), given.data() + (usable - 1 - i) * from_item,
                    static_cast<std::size_t>(from_item));
      }
      convert_elements(
          {got.data() + 1, to_stride, apart.data() + at(usable - 1, from_stride), -from_stride, n},
          how, static_cast<std::size_t>(to_item));
      for (std::ptrdiff_t i = 0; i < usable; ++i) {
        const std::size_t compared = to == ISTHMUS_LONGDOUBLE || to == ISTHMUS_CLONGDOUBLE
                                         ? 10  // the rest is padding
                                         : static_cast<std::size_t>(to_item);
        ASSERT_EQ(std::memcmp(got.data() + at(i, to_stride), packed.data() + i * to_item, compared),
                  0)
            << facts_of(from).name << " to " << facts_of(to).name << ", element " << i;
      }
    }
  }
}

// A conversion with strides passes through a buffer on this thread's stack: its old contents must
// not reach the padding. A contiguous destination keeps the padding's old bytes.
TEST(conversions, leave_the_padding_of_what_lies_apart_empty) {
  constexpr std::size_t k_elements = 40, k_used = 10;
  for (const Dtype to : {ISTHMUS_LONGDOUBLE, ISTHMUS_CLONGDOUBLE}) {
    const std::size_t item = facts_of(to).nbytes;
    const bytes ones(k_elements * 16, std::byte{0xff});
    bytes got(k_elements * 64, std::byte{0xff});
    const auto make = [&](Dtype of, Dtype from, std::size_t made) {
      convert_elements({got.data(), 64, ones.data(), 8, k_elements}, conversion_of(of, from), made);
    };
    make(ISTHMUS_COMPLEX128, ISTHMUS_COMPLEX64, 16);  // leaves bits set in the buffer on the stack
    make(ISTHMUS_UINT64, ISTHMUS_INT64, 8);
    make(to, ISTHMUS_INT64, item);
    for (std::size_t at = 0; at < got.size(); at += 64) {
      for (std::size_t part = 0; part < item; part += sizeof(long double)) {
        for (std::size_t i = k_used; i < sizeof(long double); ++i) {
          ASSERT_EQ(got[at + part + i], std::byte{0});
        }
      }
    }
  }
}

// All float16 values. Of float32 all upper halves, each with some lower halves: both sides of each
// rounding boundary, and every kind of NaN.
TEST(halves, are_the_same_by_the_processors_instructions) {
  if (float16_row_converter() == nullptr) {
    GTEST_SKIP() << "this processor has none";
  }
  std::vector<std::uint16_t> all(0x10000);
  std::iota(all.begin(), all.end(), std::uint16_t{0});
  std::vector<float> wide(all.size());
  float32_row_converter()(reinterpret_cast<std::byte*>(wide.data()),
                          reinterpret_cast<const std::byte*>(all.data()), all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    ASSERT_EQ(std::bit_cast<std::uint32_t>(wide[i]),
              std::bit_cast<std::uint32_t>(static_cast<float>(float16::from_bits(all[i]))));
  }
  for (const std::uint32_t lower : {0x0U, 0x1U, 0xfffU, 0x1000U, 0x1001U, 0x7fffU, 0xffffU}) {
    for (std::uint32_t upper = 0; upper < all.size(); ++upper) {
      wide[upper] = std::bit_cast<float>(upper << 16 | lower);
    }
    std::vector<std::uint16_t> got(all.size());
    // One less than the size, so that the last vector is not full.
    float16_row_converter()(reinterpret_cast<std::byte*>(got.data()),
                            reinterpret_cast<const std::byte*>(wide.data()), got.size() - 1);
    for (std::size_t i = 0; i + 1 < all.size(); ++i) {
      ASSERT_EQ(got[i], float16(wide[i]).bits()) << i << ' ' << lower;
    }
    EXPECT_EQ(got.back(), 0);
  }
}

TEST(halves, keep_the_bits_of_a_nan) {
  const auto kept = [](std::uint16_t bits) {
    std::array<std::byte, 4> wide{};
    std::array<std::byte, 2> back{};
    const auto* const given = reinterpret_cast<const std::byte*>(&bits);
    conversion_of(ISTHMUS_FLOAT32, ISTHMUS_FLOAT16).steps[0].run(wide.data(), given, 1);
    conversion_of(ISTHMUS_FLOAT16, ISTHMUS_FLOAT32).steps[0].run(back.data(), wide.data(), 1);
    return values::raw<std::uint16_t>(back.data());
  };
  for (const int bits : {0x7e00, 0xfe00, 0x7c01, 0x7fff}) {
    EXPECT_EQ(kept(static_cast<std::uint16_t>(bits)), bits);
  }
}

}  // namespace
