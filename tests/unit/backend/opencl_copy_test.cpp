// SPDX-License-Identifier: Apache-2.0
// Copies of rows and fills of unaligned memory, and what the driver itself refuses.

#include <algorithm>
#include <cstring>

#include "unit/backend/opencl_fixture.hpp"

namespace isthmus::opencl_test {
namespace {

class opencl_copy : public opencl_test {};

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
