// SPDX-License-Identifier: Apache-2.0
// Copies and fills between host memory and every USM kind.

#include <algorithm>
#include <cstring>

#include "unit/backend/opencl_fixture.hpp"

namespace isthmus::opencl_test {
namespace {

class opencl_copy : public opencl_test {};

TEST_P(opencl_copy, there_and_back_at_any_offset) {
  constexpr std::size_t k_largest = (std::size_t{8} << 20) + 77;
  const block made{test_context(), test_device(), k_largest + 128};
  std::vector<std::byte> back(k_largest + 128);
  for (const std::size_t nbytes :
       {std::size_t{1}, std::size_t{63}, std::size_t{4096}, std::size_t{1} << 20, k_largest}) {
    for (const std::size_t offset : {0U, 1U, 16U, 63U}) {
      const auto bytes = numbered(nbytes, static_cast<unsigned>(offset));
      std::fill(back.begin(), back.end(), std::byte{0xEE});
      finish(test_queue().copy(made.at(offset), bytes.data(), nbytes, {}));
      finish(test_queue().copy(back.data() + offset, made.at(offset), nbytes, {}));
      EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), back.data() + offset));
      EXPECT_EQ(back[offset + nbytes], std::byte{0xEE});
    }
  }
}

TEST_P(opencl_copy, operations_run_in_order_without_waits_between) {
  const block a{test_context(), test_device(), 1 << 16};
  const block b{test_context(), test_device(), 1 << 16};
  const auto bytes = numbered(1 << 16);
  std::vector<std::byte> back(1 << 16);
  ASSERT_TRUE(test_queue().copy(a.at(), bytes.data(), 1 << 16, {}));
  ASSERT_TRUE(test_queue().copy(b.at(), a.at(), 1 << 16, {}));
  ASSERT_TRUE(test_queue().fill(a.at(), {}, 1 << 16, {}));
  finish(test_queue().copy(back.data(), b.at(), 1 << 16, {}));
  EXPECT_EQ(back, bytes);
  EXPECT_EQ(read(test_queue(), a.at(), 1 << 16), std::vector<std::byte>(1 << 16));
}

struct rows {
  std::size_t width;
  std::size_t height;
  std::size_t destination_pitch;
  std::size_t source_pitch;
};

TEST_P(opencl_copy, two_dimensional) {
  for (const auto& shape : {rows{1, 1, 1, 1}, rows{64, 100, 64, 64}, rows{13, 57, 40, 13},
                            rows{100, 33, 100, 128}, rows{1100000, 3, 1100001, 1100100}}) {
    const auto bytes = numbered(shape.source_pitch * shape.height);
    const block made{test_context(), test_device(), shape.destination_pitch * shape.height};
    finish(test_queue().fill(made.at(), {}, shape.destination_pitch * shape.height, {}));
    finish(test_queue().copy_2d({made.at(), shape.destination_pitch, bytes.data(),
                                 shape.source_pitch, shape.width, shape.height},
                                {}));
    std::vector<std::byte> expected(shape.destination_pitch * shape.height);
    for (std::size_t row = 0; row < shape.height; ++row) {
      std::memcpy(&expected[row * shape.destination_pitch], &bytes[row * shape.source_pitch],
                  shape.width);
    }
    EXPECT_EQ(read(test_queue(), made.at(), expected.size()), expected) << shape.width;
  }
}

TEST_P(opencl_copy, fills_with_every_pattern_at_every_offset) {
  const block made{test_context(), test_device(), 5000};
  for (const std::size_t pattern_bytes : {1U, 2U, 4U, 8U, 16U}) {
    for (const std::size_t offset : {0U, 1U, 2U, 8U, 13U}) {
      const std::size_t nbytes = 256 * pattern_bytes;
      FillPattern pattern;
      pattern.nbytes = pattern_bytes;
      std::copy_n(numbered(16, 5).begin(), pattern_bytes, std::begin(pattern.bytes));
      finish(test_queue().fill(made.at(), {}, 5000, {}));
      finish(test_queue().fill(made.at(offset), pattern, nbytes, {}));
      std::vector<std::byte> expected(5000);
      for (std::size_t at = 0; at < nbytes; ++at) {
        expected[offset + at] = pattern.bytes[at % pattern_bytes];
      }
      EXPECT_EQ(read(test_queue(), made.at(), 5000), expected) << pattern_bytes << " at " << offset;
    }
  }
}

TEST_P(opencl_copy, prefetch_and_advice_do_or_are_refused) {
  if (!test_device().can(ISTHMUS_CAN_SHARED_KIND)) {
    GTEST_SKIP() << "no shared kind";
  }
  const block made{test_context(), test_device(), 1 << 20, ISTHMUS_KIND_SHARED};
  for (const bool to_host : {true, false}) {
    auto moved = test_queue().prefetch(made.at(), 1 << 20, to_host, {});
    if (test_device().can(ISTHMUS_CAN_PREFETCH)) {
      finish(std::move(moved));
    } else {
      EXPECT_EQ(moved.failure().code(), ISTHMUS_ERROR_UNSUPPORTED);
    }
  }
  auto advised = test_queue().advise(made.at(), 1 << 20, 0, {});
  if (!test_device().can(ISTHMUS_CAN_ADVISE)) {
    EXPECT_EQ(advised.failure().code(), ISTHMUS_ERROR_UNSUPPORTED);
  }
}

TEST_P(opencl_copy, the_driver_refuses_an_overrun) {
  if (!test_device().can(ISTHMUS_CAN_USM)) {
    GTEST_SKIP() << "SVM does not know its ends";
  }
  const block made{test_context(), test_device(), 4096};
  const auto bytes = numbered(8192);
  const auto submitted = test_queue().copy(made.at(), bytes.data(), 8192, {});
  ASSERT_FALSE(submitted);
  EXPECT_EQ(submitted.failure().code(), ISTHMUS_ERROR_DRIVER);
  // CL_INVALID_VALUE, or CL_MEM_COPY_OVERLAP where the two happen to be adjacent.
  EXPECT_TRUE(std::string_view{submitted.failure().message()}.starts_with(
      "clEnqueueMemcpyINTEL failed: CL_"))
      << submitted.failure().message();
}

INSTANTIATE_TEST_SUITE_P(opencl, opencl_copy, ::testing::Range<std::size_t>(0, 4));

}  // namespace
}  // namespace isthmus::opencl_test
