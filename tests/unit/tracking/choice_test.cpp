// SPDX-License-Identifier: Apache-2.0
// Which means of dirty tracking are in force, and how that is reported.

#include "tracking/choice.hpp"

#include <gtest/gtest.h>

#include "core/undo.hpp"
#include "tracked_fixture.hpp"

namespace isthmus::tracking {
namespace {

constexpr std::size_t k_large = std::size_t{1} << 20;

TEST(choice, by_itself_is_by_size_and_kernel) {
  if (std::getenv("ISTHMUS_TRACKING") != nullptr) {
    GTEST_SKIP() << "ISTHMUS_TRACKING is set";
  }
  const auto large = pages_are_reported() ? TrackingMechanism::pages : TrackingMechanism::hashes;
  EXPECT_EQ(make_tracked({.nbytes = k_large})->mechanism(), large);
  EXPECT_EQ(make_tracked({.nbytes = 64 << 10})->mechanism(), large);
  EXPECT_EQ(make_tracked({.nbytes = (64 << 10) - 1})->mechanism(), TrackingMechanism::bytes);
  const auto told = active_mechanism();
  EXPECT_EQ(told.large, large);
  EXPECT_EQ(told.reason.empty(), large == TrackingMechanism::pages);
  EXPECT_GE(told.granule, os::page_size());
}

TEST(choice, is_forced) {
  const Undo by_itself{[] { EXPECT_TRUE(force(std::nullopt)); }};
  for (const auto each : {TrackingMechanism::hashes, TrackingMechanism::bytes}) {
    ASSERT_TRUE(force(each));
    EXPECT_EQ(make_tracked({.nbytes = k_large})->mechanism(), each);
    EXPECT_EQ(make_tracked({.nbytes = 100})->mechanism(), TrackingMechanism::bytes);
    EXPECT_EQ(active_mechanism().large, each);
    EXPECT_FALSE(active_mechanism().reason.empty());
  }
  EXPECT_EQ(static_cast<bool>(force(TrackingMechanism::pages)),
            static_cast<bool>(pages_are_reported()));
}

}  // namespace
}  // namespace isthmus::tracking
