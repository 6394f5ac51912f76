// SPDX-License-Identifier: Apache-2.0
// Which means of dirty tracking are in force, and how that is reported.

#include "tracking/choice.hpp"

#include <gtest/gtest.h>

#include "core/undo.hpp"
#include "making.hpp"

namespace isthmus::tracking {
namespace {

constexpr std::size_t k_large = std::size_t{1} << 20;

TEST(choice, of_texts) {
  EXPECT_EQ(*means_in(nullptr), std::nullopt);
  EXPECT_EQ(*means_in(""), std::nullopt);
  for (const auto each : {Means::pages, Means::bytes, Means::hashes}) {
    EXPECT_EQ(*means_in(means_name(each)), each);
  }
  auto wrong = means_in("page");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.failure().code(), ISTHMUS_ERROR_INVALID_ARGUMENT);
}

TEST(choice, by_itself_is_by_size_and_kernel) {
  if (std::getenv("ISTHMUS_TRACKING") != nullptr) {
    GTEST_SKIP() << "ISTHMUS_TRACKING is set";
  }
  const auto large = pages_are_told() ? Means::pages : Means::hashes;
  EXPECT_EQ(make_tracked({.nbytes = k_large})->by(), large);
  EXPECT_EQ(make_tracked({.nbytes = 64 << 10})->by(), large);
  EXPECT_EQ(make_tracked({.nbytes = (64 << 10) - 1})->by(), Means::bytes);
  const auto told = what_is_in_force();
  EXPECT_EQ(told.large, large);
  EXPECT_EQ(told.reason.empty(), large == Means::pages);
  EXPECT_GE(told.granule, os::page_size());
}

TEST(choice, is_forced) {
  const Undo by_itself{[] { EXPECT_TRUE(force(std::nullopt)); }};
  for (const auto each : {Means::hashes, Means::bytes}) {
    ASSERT_TRUE(force(each));
    EXPECT_EQ(make_tracked({.nbytes = k_large})->by(), each);
    EXPECT_EQ(make_tracked({.nbytes = 100})->by(), Means::bytes);
    EXPECT_EQ(what_is_in_force().large, each);
    EXPECT_FALSE(what_is_in_force().reason.empty());
  }
  EXPECT_EQ(static_cast<bool>(force(Means::pages)), static_cast<bool>(pages_are_told()));
}

}  // namespace
}  // namespace isthmus::tracking
