// SPDX-License-Identifier: Apache-2.0
// The 16-bit floating-point types: every number converts to float and back, and every rounding is
// tested next to its neighbours.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <isthmus/float16.hpp>
#include <random>

namespace {

namespace im = isthmus;

template <class Half>
std::uint16_t bits_of(std::uint32_t number) {
  return Half::from_bits(static_cast<std::uint16_t>(number)).bits();
}

template <class Half>
class halves : public ::testing::Test {};
using both = ::testing::Types<im::float16, im::bfloat16>;
TYPED_TEST_SUITE(halves, both, );

TYPED_TEST(halves, come_back_as_they_were) {
  for (std::uint32_t number = 0; number <= 0xffff; ++number) {
    const auto half = TypeParam::from_bits(static_cast<std::uint16_t>(number));
    const TypeParam back(static_cast<float>(half));
    if (std::isnan(static_cast<float>(half))) {
      EXPECT_TRUE(std::isnan(static_cast<float>(back)));
    } else {
      EXPECT_EQ(back.bits(), bits_of<TypeParam>(number));
    }
  }
}

// Between two neighbours: below the middle to the lower one, above it to the upper one, in the
// middle to the even one.
TYPED_TEST(halves, round_to_the_nearest_and_ties_to_even) {
  for (std::uint32_t number = 0;; ++number) {
    const auto lower = TypeParam::from_bits(static_cast<std::uint16_t>(number));
    const auto upper = TypeParam::from_bits(static_cast<std::uint16_t>(number + 1));
    const double low = static_cast<float>(lower), high = static_cast<float>(upper);
    if (!std::isfinite(high)) break;
    const double middle = (low + high) / 2, step = high - low;
    const std::uint16_t even = (number & 1U) == 0 ? lower.bits() : upper.bits();
    const auto rounds = [](double value) { return TypeParam(value).bits(); };
    ASSERT_EQ(rounds(middle), even) << number;
    ASSERT_EQ(rounds(-middle), even | 0x8000) << number;
    ASSERT_EQ(rounds(middle - step * 1e-9), lower.bits()) << number << ": rounded twice";
    ASSERT_EQ(rounds(middle + step * 1e-9), upper.bits()) << number << ": rounded twice";
    ASSERT_EQ(TypeParam(static_cast<float>(low + step / 4)).bits(), lower.bits()) << number;
    ASSERT_EQ(TypeParam(static_cast<float>(low + step * 3 / 4)).bits(), upper.bits()) << number;
  }
}

// Numbers with more digits than double has, each close to a middle.
TYPED_TEST(halves, round_whole_numbers_and_long_doubles_once) {
  std::mt19937_64 random(5);
  for (int turn = 0; turn < 20'000; ++turn) {
    const std::uint64_t digits = random() >> (random() % 48);
    const std::uint64_t above = std::uint64_t{1} << (random() % 64), near = digits / above * above;
    for (const std::uint64_t number : {digits, near, near + 1, near - 1}) {
      const auto whole = static_cast<long double>(number);
      ASSERT_EQ(TypeParam(number).bits(), TypeParam(whole).bits()) << number;
      const auto is_signed = static_cast<std::int64_t>(number);
      const auto value = static_cast<long double>(is_signed);
      ASSERT_EQ(TypeParam(is_signed).bits(), TypeParam(value).bits()) << is_signed;
    }
  }
}

TYPED_TEST(halves, end_in_infinity) {
  EXPECT_TRUE(std::isinf(static_cast<float>(TypeParam(1e39))));
  EXPECT_TRUE(std::isinf(static_cast<float>(TypeParam(-1e300))));
  EXPECT_TRUE(std::isinf(static_cast<float>(TypeParam(INFINITY))));
  EXPECT_TRUE(std::isnan(static_cast<float>(TypeParam(NAN))));
  EXPECT_EQ(TypeParam(0.0).bits(), 0);
  EXPECT_EQ(TypeParam(-0.0).bits(), 0x8000);
  EXPECT_EQ(static_cast<float>(TypeParam(3)), 3.0f);
  EXPECT_EQ(static_cast<float>(TypeParam(true) + TypeParam(2)), 3.0f);
}

// As in NumPy. A signalling NaN remains one.
TEST(float16, keeps_the_payload_of_a_nan) {
  const auto bits_of_nan = [](std::uint32_t bits) {
    return im::float16(std::bit_cast<float>(bits)).bits();
  };
  EXPECT_EQ(bits_of_nan(0x7fc00000), 0x7e00);
  EXPECT_EQ(bits_of_nan(0xffffe000), 0xffff);
  EXPECT_EQ(bits_of_nan(0x7f802000), 0x7c01);
  EXPECT_EQ(bits_of_nan(0x7f800001), 0x7c01) << "not an infinity";
}

TEST(float16, overflows_as_in_the_standard) {
  EXPECT_EQ(im::float16(65519.99).bits(), 0x7bff);
  EXPECT_EQ(im::float16(65520.0).bits(), 0x7c00);
  EXPECT_EQ(im::float16(65535).bits(), 0x7c00);
}

}  // namespace
