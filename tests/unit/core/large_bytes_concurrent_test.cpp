// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <span>
#include <vector>

#include "core/bytes.hpp"
#include "core/sanitizers.hpp"
#include "core/share_out.hpp"
#include "core/stream_copy.hpp"
#include "unit/core/patterns.hpp"

namespace isthmus {
namespace {

constexpr std::byte k_untouched{0xEE};

// All 64-byte lines and all chunks differ.
std::vector<std::byte> numbered(std::size_t nbytes) {
  std::vector<std::uint32_t> numbers(nbytes / 4 + 1);
  std::iota(numbers.begin(), numbers.end(), 1U);
  std::vector<std::byte> made(nbytes);
  std::ranges::copy(std::as_bytes(std::span{numbers}).first(nbytes), made.begin());
  return made;
}

void expect_copied(std::size_t nbytes, std::size_t to_offset, std::size_t from_offset) {
  const auto source = numbered(nbytes + from_offset);
  std::vector<std::byte> target(nbytes + to_offset + 64, k_untouched);
  copy_bytes(target.data() + to_offset, source.data() + from_offset, nbytes);
  EXPECT_EQ(std::memcmp(target.data() + to_offset, source.data() + from_offset, nbytes), 0);
  for (std::size_t before = 0; before < to_offset; ++before) {
    ASSERT_EQ(target[before], k_untouched);
  }
  for (std::size_t after = to_offset + nbytes; after < target.size(); ++after) {
    ASSERT_EQ(target[after], k_untouched);
  }
}

TEST(large_bytes, are_copied_all_and_no_other_at_any_offset) {
  for (const std::size_t more : {0U, 1U, 63U, 65U, 4097U, (1U << 20U) - 1U}) {
    for (const auto& [to, from] : {std::pair{0U, 0U}, {1U, 0U}, {0U, 7U}, {63U, 64U}, {16U, 1U}}) {
      SCOPED_TRACE(testing::Message() << more << " more, at " << to << " from " << from);
      expect_copied(k_large_bytes + more, to, from);
    }
  }
}

TEST(stream_copy, is_right_at_every_size_and_offset) {
  for (std::size_t nbytes = 1; nbytes < 200; ++nbytes) {
    const auto source = numbered(nbytes);
    std::vector<std::byte> target(nbytes + 3, k_untouched);
    stream_copy(target.data() + 3, source.data(), nbytes);
    ASSERT_EQ(std::memcmp(target.data() + 3, source.data(), nbytes), 0);
  }
}

TEST(large_bytes, are_filled_with_whole_patterns) {
  for (const std::size_t width : {1U, 2U, 4U, 8U, 16U}) {
    const auto pattern = numbered_pattern(width);
    const auto nbytes = k_large_bytes + 3 * width;
    std::vector<std::byte> filled(nbytes + 6, k_untouched);
    fill_bytes(filled.data() + 3, pattern, nbytes);
    for (std::size_t index = 0; index < nbytes; ++index) {
      ASSERT_EQ(filled[3 + index], pattern.bytes[index % width]) << width << " " << index;
    }
    EXPECT_EQ(filled[2], k_untouched);
    EXPECT_EQ(filled[3 + nbytes], k_untouched);
  }
}

// In a child process whose address space has no space for the stack of another thread.
TEST(large_bytes, are_copied_by_the_caller_where_no_thread_can_be_created) {
  if (k_address_sanitizer || k_thread_sanitizer) {
    GTEST_SKIP() << "the sanitizer itself needs address space";
  }
  const auto copy_without_threads = [] {
    const auto source = numbered(k_large_bytes + 5);
    std::vector<std::byte> target(source.size());
    const rlimit nothing_more{1, 1};
    if (setrlimit(RLIMIT_AS, &nothing_more) != 0) {
      std::_Exit(2);
    }
    copy_bytes(target.data(), source.data(), source.size());
    std::_Exit(target == source ? 0 : 1);
  };
  EXPECT_EXIT(copy_without_threads(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace isthmus
