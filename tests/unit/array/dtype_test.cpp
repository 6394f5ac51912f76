// SPDX-License-Identifier: Apache-2.0
// The table of dtypes, and NumPy's casting rules. The expected rows are the results of
// numpy.can_cast.
#include "array/dtype.hpp"

#include <gtest/gtest.h>

#include <complex>
#include <string>

namespace {

using namespace isthmus;

// One row for each source dtype, one column for each destination dtype, in the order of their
// numbers.
constexpr std::array<const char*, k_dtypes> k_safe{"11111111111111111",   // bool
                                                   "01111000011111111",   // int8
                                                   "00111000000111111",   // int16
                                                   "00011000000011011",   // int32
                                                   "00001000000011011",   // int64
                                                   "00111111111111111",   // uint8
                                                   "00011011100111111",   // uint16
                                                   "00001001100011011",   // uint32
                                                   "00000000100011011",   // uint64
                                                   "00000000010111111",   // float16
                                                   "00000000001111111",   // bfloat16
                                                   "00000000000111111",   // float32
                                                   "00000000000011011",   // float64
                                                   "00000000000001001",   // longdouble
                                                   "00000000000000111",   // complex64
                                                   "00000000000000011",   // complex128
                                                   "00000000000000001"};  // clongdouble
constexpr const char* k_signed = "01111000011111111";
constexpr const char* k_unsigned = "01111111111111111";
constexpr const char* k_float = "00000000011111111";
constexpr const char* k_complex = "00000000000000111";
constexpr std::array<const char*, k_dtypes> k_same_kind{
    "11111111111111111", k_signed,   k_signed, k_signed, k_signed, k_unsigned, k_unsigned,
    k_unsigned,          k_unsigned, k_float,  k_float,  k_float,  k_float,    k_float,
    k_complex,           k_complex,  k_complex};

TEST(dtypes, cast_as_in_numpy) {
  for (std::size_t from = 0; from < k_dtypes; ++from) {
    for (std::size_t to = 0; to < k_dtypes; ++to) {
      const auto a = static_cast<Dtype>(from + 1);
      const auto b = static_cast<Dtype>(to + 1);
      const std::string what = std::string(facts_of(a).name) + " to " + facts_of(b).name;
      EXPECT_EQ(can_cast(a, b, ISTHMUS_CASTING_NO), from == to) << what;
      EXPECT_EQ(can_cast(a, b, ISTHMUS_CASTING_SAFE), k_safe.at(from)[to] == '1') << what;
      EXPECT_EQ(can_cast(a, b, ISTHMUS_CASTING_SAME_KIND), k_same_kind.at(from)[to] == '1') << what;
      EXPECT_TRUE(can_cast(a, b, ISTHMUS_CASTING_UNSAFE)) << what;
    }
  }
}

TEST(dtypes, that_are_none) {
  for (const Dtype number : {-1, 0, 18, 1'000'000}) {
    EXPECT_FALSE(can_cast(number, ISTHMUS_BOOL, ISTHMUS_CASTING_UNSAFE));
    EXPECT_FALSE(can_cast(ISTHMUS_BOOL, number, ISTHMUS_CASTING_UNSAFE));
    EXPECT_EQ(check_cast(number, ISTHMUS_BOOL, ISTHMUS_CASTING_UNSAFE).failure().code(),
              ISTHMUS_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(check_cast(ISTHMUS_BOOL, number, ISTHMUS_CASTING_UNSAFE).failure().code(),
              ISTHMUS_ERROR_INVALID_ARGUMENT);
  }
  for (const Casting rule : {-1, 4}) {
    EXPECT_FALSE(can_cast(ISTHMUS_BOOL, ISTHMUS_BOOL, rule));
    EXPECT_FALSE(check_cast(ISTHMUS_BOOL, ISTHMUS_BOOL, rule));
  }
}

TEST(dtypes, have_their_facts) {
  EXPECT_STREQ(facts_of(ISTHMUS_BOOL).name, "bool");
  EXPECT_EQ(facts_of(ISTHMUS_BOOL).nbytes, 1U);
  EXPECT_STREQ(facts_of(ISTHMUS_BFLOAT16).name, "bfloat16");
  EXPECT_EQ(facts_of(ISTHMUS_BFLOAT16).dlpack_code, 4);
  EXPECT_EQ(facts_of(ISTHMUS_FLOAT64).nbytes, 8U);
  EXPECT_EQ(facts_of(ISTHMUS_FLOAT64).kind, 'f');
  EXPECT_STREQ(facts_of(ISTHMUS_CLONGDOUBLE).name, "clongdouble");
  EXPECT_EQ(facts_of(ISTHMUS_CLONGDOUBLE).nbytes, sizeof(std::complex<long double>));
  EXPECT_EQ(facts_of(ISTHMUS_COMPLEX64).alignment, alignof(float));
  EXPECT_EQ(component_dtype(ISTHMUS_COMPLEX128), ISTHMUS_FLOAT64);
  EXPECT_EQ(component_dtype(ISTHMUS_INT8), ISTHMUS_INT8);
}

}  // namespace
