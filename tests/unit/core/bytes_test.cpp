// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "core/bytes.hpp"
#include "core/sizes.hpp"
#include "unit/core/patterns.hpp"

namespace isthmus {
namespace {

TEST(sizes, ranges_do_not_wrap) {
  EXPECT_TRUE(lies_within(0, 0, 0));
  EXPECT_TRUE(lies_within(3, 5, 8));
  EXPECT_FALSE(lies_within(4, 5, 8));
  EXPECT_FALSE(lies_within(9, 0, 8));
  EXPECT_FALSE(lies_within(UINT64_MAX, 2, 8));
  EXPECT_FALSE(lies_within(2, UINT64_MAX, 8));
}

TEST(sizes, are_described_with_the_exact_number) {
  EXPECT_EQ(std::string_view{describe_bytes(100)}, "100 bytes");
  EXPECT_EQ(std::string_view{describe_bytes(1536)}, "1.5 KiB (1536 bytes)");
  EXPECT_EQ(std::string_view{describe_bytes(UINT64_MAX - (std::uint64_t{1} << 53))},
            "15.99 EiB (18437736874454810623 bytes)");
}

TEST(fill, repeats_the_pattern_at_every_size) {
  for (const std::size_t width : {1U, 2U, 4U, 8U, 16U}) {
    const auto pattern = numbered_pattern(width);
    for (const std::size_t count : {1U, 2U, 3U, 255U, 4096U, 5000U}) {
      std::vector<std::byte> filled(width * count + 1, std::byte{0xEE});
      fill_bytes(filled.data(), pattern, width * count);
      for (std::size_t index = 0; index < width * count; ++index) {
        ASSERT_EQ(filled[index], pattern.bytes[index % width])
            << width << " " << count << " " << index;
      }
      EXPECT_EQ(filled.back(), std::byte{0xEE});
    }
  }
}

TEST(rows, leave_the_gaps_alone) {
  std::vector<std::byte> from(60);
  std::vector<std::byte> to(80, std::byte{0xEE});
  for (std::size_t index = 0; index < from.size(); ++index) {
    from[index] = static_cast<std::byte>(index);
  }
  copy_rows({to.data(), 20, from.data(), 15, 10, 4});
  for (std::size_t row = 0; row < 4; ++row) {
    EXPECT_EQ(std::memcmp(&to[row * 20], &from[row * 15], 10), 0);
    EXPECT_EQ(to[row * 20 + 10], std::byte{0xEE});
  }
}

}  // namespace
}  // namespace isthmus
