// SPDX-License-Identifier: Apache-2.0
// Pending transfers (`flight`) of any lengths and queues, compared with a linear search.

#include "unified/inflight_transfers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace isthmus {
namespace {

constexpr std::size_t k_bytes = 10'000;

class inflight_list_test : public testing::Test {
 protected:
  std::size_t below(std::size_t end) { return random_() % end; }
  // A range of any length, more often a short one.
  ByteRange any_range() {
    const auto begin = below(k_bytes);
    const auto length = below(std::size_t{1} << below(14));
    return {begin, std::min(k_bytes, begin + length)};
  }
  RangeSet some_ranges() {
    RangeSet made;
    while (made.empty()) {
      for (auto left = 1 + below(3); left != 0; --left) {
        made.add(any_range());
      }
    }
    return made;
  }
  void add_any() {
    auto made = all_.make_entry(below(4), below(2) == 0, some_ranges());
    made->event = completed_event();
    auto* const at = &*made;
    all_.add(std::move(made));
    model_.push_back(at);
  }
  void erase_any() {
    const auto which = model_.begin() + static_cast<std::ptrdiff_t>(below(model_.size()));
    all_.erase(**which);
    model_.erase(which);
  }

  std::mt19937_64 random_{5};
  InflightTransfers all_;
  std::vector<InflightTransfer*> model_;
};

TEST_F(inflight_list_test, finds_those_of_some_bytes) {
  for (int step = 0; step < 4000; ++step) {
    model_.empty() || below(5) < 3 ? add_any() : erase_any();
    const auto range = any_range();
    const bool to_device = below(2) == 0;
    auto found = all_.overlapping(range, to_device);
    std::vector<InflightTransfer*> want;
    std::ranges::copy_if(model_, std::back_inserter(want), [&](const InflightTransfer* each) {
      return each->to_device == to_device && each->ranges.overlaps(range);
    });
    std::ranges::sort(found);
    std::ranges::sort(want);
    ASSERT_EQ(found, want);
    ASSERT_EQ(all_.empty(), model_.empty());
  }
}

// A transfer that has not completed stands for the later ones of its queue, and for no others.
TEST_F(inflight_list_test, polls_the_first_of_each_queue) {
  for (int i = 0; i < 200; ++i) {
    add_any();
  }
  std::vector<InflightTransfer*> first;
  for (auto* each : model_) {
    if (each->queue_serial() == 0 ||
        std::ranges::none_of(first, [&](const InflightTransfer* other) {
          return other->queue_serial() == each->queue_serial();
        })) {
      first.push_back(each);
    }
  }
  std::vector<InflightTransfer*> asked;
  for (auto each = all_.begin(); each != all_.end(); each = all_.next_after(each)) {
    asked.push_back(&each->second);
  }
  std::ranges::sort(first);
  std::ranges::sort(asked);
  EXPECT_EQ(asked, first);
}

// A transfer that was not submitted leaves no entry.
TEST_F(inflight_list_test, forgets_what_was_not_added) {
  static_cast<void>(all_.make_entry(1, true, {{0, 10}}));
  EXPECT_TRUE(all_.empty());
  EXPECT_TRUE(all_.overlapping({0, k_bytes}, true).empty());
}

}  // namespace
}  // namespace isthmus
