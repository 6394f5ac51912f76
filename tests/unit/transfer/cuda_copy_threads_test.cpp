// SPDX-License-Identifier: Apache-2.0
// The number of threads that copy pageable memory: chosen by how long the program's earlier copies
// took, or set by the environment.

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "memory/records/allocation_creation.hpp"
#include "transfer/copy_threads.hpp"
#include "transfer/transfer.hpp"
#include "unit/backend/cuda_fixture.hpp"

namespace isthmus::cuda_test {
namespace {

constexpr std::size_t k_copy_bytes = std::size_t{8} << 20;

class cuda_copy_threads : public cuda_test {
 protected:
  [[nodiscard]] Endpoint make() {
    auto made = *create_allocation(test_queue(), {ISTHMUS_KIND_DEVICE, k_copy_bytes, 0}, nullptr);
    auto* const start = static_cast<std::byte*>(made->facts().base);
    return {start, std::move(made), &test_queue()};
  }
  [[nodiscard]] Submitted copy_all(const Endpoint& to, const Endpoint& from) {
    return copy(&test_queue(), to, from, k_copy_bytes, {{}, {}, true});
  }
};

// Holds for any number of processors: with one there is nothing to find out.
TEST_F(cuda_copy_threads, are_known_after_some_copies) {
  const auto there = make();
  std::vector<std::byte> data(k_copy_bytes);
  const Endpoint here{data.data(), nullptr, nullptr};
  const auto most = std::min(os::processors_of_thread().count(), StagingRing::k_max_slot_pairs);
  for (const bool to_device : {true, false}) {
    auto& choice = StagingRing::of(test_device()).threads(to_device);
    for (int copies = 0; copies < 100 && !choice.is_decided(k_copy_bytes, most); ++copies) {
      ASSERT_TRUE(to_device ? copy_all(there, here) : copy_all(here, there));
    }
    EXPECT_TRUE(choice.is_decided(k_copy_bytes, most)) << to_device;
  }
}

TEST_F(cuda_copy_threads, are_refused_where_the_environment_names_no_number) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto in_child = [this] {
    setenv("ISTHMUS_COPY_THREADS", "many", 1);
    const auto there = make();
    std::vector<std::byte> data(k_copy_bytes);
    const auto copied = copy_all(there, {data.data(), nullptr, nullptr});
    std::exit(!copied && copied.failure().code() == ISTHMUS_ERROR_INVALID_ARGUMENT ? 7 : 8);
  };
  EXPECT_EXIT(in_child(), ::testing::ExitedWithCode(7), "");
}

TEST(copy_threads, are_a_number_from_one_to_the_number_of_slot_pairs) {
  EXPECT_EQ(*parse_threads(nullptr), 0U);
  EXPECT_EQ(*parse_threads(""), 0U);
  EXPECT_EQ(*parse_threads("1"), 1U);
  EXPECT_EQ(*parse_threads("8"), StagingRing::k_max_slot_pairs);
  for (const char* bad : {"0", "9", "-1", "2 ", " 2", "two", "99999999999999999999999"}) {
    const auto asked = parse_threads(bad);
    ASSERT_FALSE(asked) << bad;
    EXPECT_EQ(asked.failure().code(), ISTHMUS_ERROR_INVALID_ARGUMENT);
    const std::string_view told = asked.failure().message();
    EXPECT_NE(told.find('"' + std::string{bad} + '"'), std::string_view::npos) << told;
    EXPECT_NE(told.find("from 1 to 8"), std::string_view::npos) << told;
  }
}

}  // namespace
}  // namespace isthmus::cuda_test
