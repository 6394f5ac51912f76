// SPDX-License-Identifier: Apache-2.0
// Visits in several steps, compared with a plain model of the index.

#include "memory/records/use_index.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <set>
#include <vector>

namespace isthmus {
namespace {

// Uses are numbered by their position in `made_`, beginning at 1.
class indexed_uses {
 public:
  struct one {
    Use what;
    UseIndex::Node* there = nullptr;  // null once it was removed
    std::uint64_t stands_for_it = 0;  // the number of the use that replaced it, or 0
  };

  [[nodiscard]] const UseIndex& index() const { return index_; }
  [[nodiscard]] std::uint64_t next_number() const { return made_.size() + 1; }
  [[nodiscard]] const one& at(std::uint64_t number) const { return made_.at(number - 1); }
  void add(const ByteRange& range, bool writes) {
    const auto number = next_number();
    const PendingUse added{{number, range, writes}, completed_event(), number};
    index_.add_spare(std::make_unique<UseIndex::Node>());
    index_.insert(added);
    made_.push_back({added.use, index_.find(added)});
  }
  // Removes all uses that the last one covers.
  void replace_covered() {
    const auto& last = made_.back().what;
    for (auto& each : made_) {
      if (&each != &made_.back() && each.there != nullptr && last.range.covers(each.what.range) &&
          (last.writes || !each.what.writes)) {
        UseIndex::Chain gone;
        index_.remove(*each.there, gone);
        each.there = nullptr;
        each.stands_for_it = made_.size();
      }
    }
  }

 private:
  UseIndex index_;
  std::vector<one> made_;
};

ByteRange random_range(std::mt19937& random) {
  const std::size_t begin = random() % 64;
  return {begin, begin + 1 + random() % 16};
}

bool is_wanted(const Use& what, const ByteRange& range, bool only_writes) {
  return what.range.overlaps(range) && (what.writes || !only_writes);
}

TEST(use_index, a_walk_in_parts_visits_all_that_stays_once_and_in_order) {
  std::mt19937 random{20261128};
  for (int round = 0; round < 200; ++round) {
    indexed_uses uses;
    for (int each = 0; each < 60; ++each) {
      uses.add(random_range(random), random() % 2 == 0);
    }
    const auto stay_from = uses.next_number();
    const auto range = random_range(random);
    const bool only_writes = random() % 2 == 0;
    std::vector<std::uint64_t> visited;
    UseIndex::Walk walk{range, only_writes};
    const std::size_t most = 1 + random() % 5;
    const auto note = [&](const UseIndex::Node& each) { visited.push_back(each.number); };
    while (!walk.visit_next(uses.index(), most, note)) {
      uses.add(random_range(random), random() % 2 == 0);
    }
    std::vector<std::uint64_t> old;
    std::ranges::copy_if(visited, std::back_inserter(old),
                         [&](std::uint64_t each) { return each < stay_from; });
    std::vector<std::uint64_t> expected;
    for (std::uint64_t each = 1; each < stay_from; ++each) {
      if (is_wanted(uses.at(each).what, range, only_writes)) {
        expected.push_back(each);
      }
    }
    std::ranges::stable_sort(expected, {},
                             [&](std::uint64_t each) { return uses.at(each).what.range.begin; });
    ASSERT_EQ(old, expected) << "round " << round;
  }
}

TEST(use_index, a_walk_from_a_number_on_visits_no_older_ones) {
  indexed_uses uses;
  for (std::size_t each = 0; each < 100; ++each) {
    uses.add({each % 10, each % 10 + 1}, true);
  }
  std::set<std::uint64_t> visited;
  UseIndex::Walk walk{{0, 10}};
  walk.restart(91);
  EXPECT_TRUE(
      walk.visit_next(uses.index(), 11, [&](const auto& each) { visited.insert(each.number); }));
  EXPECT_EQ(visited.size(), 10U);
  EXPECT_EQ(*visited.begin(), 91U);
}

// The replacement begins before the range that was already visited.
TEST(use_index, a_scan_finds_what_stands_for_a_use_that_left_before_it_was_visited) {
  indexed_uses uses;
  uses.add({10, 11}, true);
  uses.add({20, 21}, true);
  std::vector<std::uint64_t> visited;
  const auto note = [&](const UseIndex::Node& each) { visited.push_back(each.number); };
  UseIndex::Scan scan{{0, 64}};
  EXPECT_FALSE(scan.visit_next(uses.index(), uses.next_number(), 1, note));
  uses.add({5, 30}, true);
  uses.replace_covered();
  while (!scan.visit_next(uses.index(), uses.next_number(), 1, note)) {
  }
  EXPECT_EQ(visited, (std::vector<std::uint64_t>{1, 3}));
}

// Any use may cover any other between the steps.
TEST(use_index, a_scan_misses_nothing_in_random_histories) {
  std::mt19937 random{20261129};
  std::size_t found_instead = 0;
  for (int round = 0; round < 500; ++round) {
    indexed_uses uses;
    for (int each = 0; each < 40; ++each) {
      uses.add(random_range(random), random() % 2 == 0);
    }
    const auto began_at = uses.next_number();
    const auto range = random_range(random);
    const bool only_writes = random() % 2 == 0;
    std::set<std::uint64_t> visited;
    UseIndex::Scan scan{range, only_writes};
    const auto note = [&](const UseIndex::Node& each) { visited.insert(each.number); };
    for (int added = 0; !scan.visit_next(uses.index(), uses.next_number(), 2, note);) {
      if (random() % 2 == 0 && ++added < 40) {
        uses.add(random_range(random), random() % 2 == 0);
        uses.replace_covered();
      }
    }
    for (std::uint64_t each = 1; each < began_at; ++each) {
      if (is_wanted(uses.at(each).what, range, only_writes)) {
        auto found = each;
        while (found != 0 && !visited.contains(found)) {
          found = uses.at(found).stands_for_it;
        }
        ASSERT_NE(found, 0U) << "round " << round << ", number " << each;
        found_instead += found != each ? 1U : 0U;
      }
    }
  }
  EXPECT_GT(found_instead, 0U) << "or nothing was tested";
}

}  // namespace
}  // namespace isthmus
