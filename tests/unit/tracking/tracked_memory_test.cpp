// SPDX-License-Identifier: Apache-2.0
// Properties of tracked memory with any means of tracking: random operations, compared with plain
// arrays.

#include <gtest/gtest.h>

#include <random>

#include "core/sizes.hpp"
#include "tracked_fixture.hpp"
#include "tracking/take_all.hpp"
#include "tracking/unwatched.hpp"

namespace isthmus::tracking {
namespace {

struct kind {
  TrackingMechanism by;
  std::size_t nbytes;
  Granularity grain = Granularity::automatic;
};

std::string kind_name(const testing::TestParamInfo<kind>& info) {
  return std::string{mechanism_name(info.param.by)} + "_" + std::to_string(info.param.nbytes) +
         (info.param.grain == Granularity::page ? "_page" : "");
}

// A model of a device's copy, which is updated by what the memory reports.
class tracked_memory_test : public testing::TestWithParam<kind> {
 protected:
  void SetUp() override {
    if (GetParam().by == TrackingMechanism::pages) {
      if (auto told = pages_are_reported(); !told) {
        GTEST_SKIP() << told.failure().message();
      }
    }
    memory_ = make_tracked({GetParam().nbytes, GetParam().grain, GetParam().by});
    ASSERT_NE(memory_, nullptr);
    view_.resize(memory_->nbytes());
    device_.resize(memory_->nbytes());
  }

  ByteRange any_range() {
    const auto begin = random_() % memory_->nbytes();
    const auto most = std::size_t{1} << random_() % 23;
    return {begin, begin + 1 + random_() % std::min(memory_->nbytes() - begin, most)};
  }
  void fill(std::byte* at, const ByteRange& range) {
    fill_with_noise(at + range.begin, range.nbytes(), random_);
  }
  void write() {
    const auto range = any_range();
    if (who_ == Writers::none) {
      memory_->expect_writers();
      who_ = Writers::some;
    }
    write(range);
  }
  void write(const ByteRange& range) {
    fill(view_.data(), range);
    std::memcpy(memory_->view() + range.begin, view_.data() + range.begin, range.nbytes());
    changed_.add(range);
  }
  // Page tracking reports what was written, the other means what differs.
  RangeSet must_be_told() {
    if (memory_->mechanism() == TrackingMechanism::pages) {
      return changed_;
    }
    RangeSet differing;
    add_differences(view_.data(), device_.data(), view_.size(), 0, differing);
    return differing;
  }
  void take() {
    const auto told = must_be_told();
    RangeSet found, missed = told, allowed = owed_;
    memory_->take(found);
    missed.remove(found);
    missed.remove(owed_);
    EXPECT_EQ(missed.nbytes(), 0U);
    for (const auto& each : told) {
      allowed.add(granules(*memory_, each, memory_->granule()));
    }
    owed_.add(found);
    changed_.clear();
    if (memory_->mechanism() != TrackingMechanism::hashes) {  // hashes may have been discarded
      found.remove(allowed);
      EXPECT_EQ(found.nbytes(), 0U);
    }
  }
  // Sometimes declares that there are no writers from here on, until the next `write`.
  void stop_writers() {
    take();
    who_ = random_() % 2 == 0 ? Writers::none : who_;
  }
  void bring_to_device() {
    stop_writers();
    auto snapped = memory_->snapshot(owed_, who_);
    ASSERT_TRUE(snapped);
    for (const auto& each : owed_) {
      std::memcpy(device_.data() + each.begin, *snapped + each.begin, each.nbytes());
    }
    owed_.clear();
    EXPECT_TRUE(same(device_, {memory_->view(), memory_->nbytes()}));
  }
  void bring_parts_to_device() {
    who_ = random_() % 2 == 0 ? Writers::none : who_;
    const auto owed = owed_;
    std::size_t upto = 0;
    const auto bring = [&](const ByteRange& part, RangeSet&& found, const std::byte* from) {
      EXPECT_EQ(part.begin, upto);
      upto = part.end;
      auto rest = owed.common({part});
      rest.remove(found);
      EXPECT_TRUE(memory_->snapshot(rest, who_));
      found.add(rest);
      for (const auto& each : found) {
        std::memcpy(device_.data() + each.begin, from + each.begin, each.nbytes());
      }
      return Result<void>{};
    };
    ASSERT_TRUE(memory_->take_in_parts(who_, bring));
    EXPECT_EQ(upto, memory_->nbytes());
    owed_.clear();
    changed_.clear();
    EXPECT_TRUE(same(device_, {memory_->view(), memory_->nbytes()}));
  }
  // Other ranges may be written meanwhile.
  void write_exactly() {
    stop_writers();
    const auto range = any_range();
    const bool keeps = random_() % 2 == 0;
    auto begun = memory_->begin_write(range, keeps, who_);
    ASSERT_TRUE(begun);
    if (keeps) {
      EXPECT_TRUE(same({*begun, range.nbytes()}, {view_.data() + range.begin, range.nbytes()}));
    }
    fill(view_.data(), range);
    std::memcpy(*begun, view_.data() + range.begin, range.nbytes());
    if (range.begin > 0 && random_() % 2 == 0) {
      const auto end = range.begin;
      const ByteRange before{end - std::min<std::size_t>(end, 1 + random_() % 100), end};
      if (who_ == Writers::none) {
        memory_->expect_writers();
        who_ = Writers::some;
      }
      write(before);
      if (random_() % 2 == 0) {
        memory_->take(owed_);
        changed_.clear();
      }
    }
    ASSERT_TRUE(memory_->end_write(range, {range}, *begun, who_));
    owed_.add(range);
  }
  void bring_from_device() {
    stop_writers();
    RangeSet news{any_range(), any_range()};
    news.remove(owed_);
    for (const auto& each : news) {
      fill(device_.data(), each);
      std::memcpy(view_.data() + each.begin, device_.data() + each.begin, each.nbytes());
      std::memcpy(memory_->library() + each.begin, device_.data() + each.begin, each.nbytes());
    }
    ASSERT_TRUE(memory_->publish(news, who_));
  }
  void refine() {
    take();
    memory_->refine(any_range());
  }

  memory_pointer memory_;
  bytes view_, device_;
  RangeSet changed_;  // since the last scan
  RangeSet owed_;
  Writers who_ = Writers::some;
  std::mt19937_64 random_{7};
};

TEST_P(tracked_memory_test, random_sequences_lose_nothing) {
  for (int step = 0; step < 400; ++step) {
    switch (random_() % 10) {
      case 0: take(); break;
      case 1: bring_to_device(); break;
      case 2: bring_from_device(); break;
      case 3: refine(); break;
      case 4: write_exactly(); break;
      case 5: bring_parts_to_device(); break;
      default: write(); break;
    }
    ASSERT_FALSE(HasFailure()) << step;
  }
  EXPECT_TRUE(same({memory_->view(), memory_->nbytes()}, view_));
  bring_to_device();
}

TEST_P(tracked_memory_test, is_zeroed_and_unwritten_at_first) {
  EXPECT_TRUE(taken(*memory_).empty());
  EXPECT_TRUE(same({memory_->view(), memory_->nbytes()}, view_));
  EXPECT_TRUE(taken(*memory_).empty());
  EXPECT_EQ(memory_->mechanism(), GetParam().by);
  EXPECT_EQ(memory_->is_one_memory(), GetParam().by == TrackingMechanism::pages);
}

TEST_P(tracked_memory_test, reports_a_write_by_its_granule) {
  const auto last = memory_->nbytes() - 1;
  memory_->view()[last] = std::byte{1};
  const ByteRange one{last, last + 1};
  const auto found = taken(*memory_);
  RangeSet missed{one};
  missed.remove(found);
  EXPECT_TRUE(missed.empty());
  RangeSet more = found;
  more.remove({granules(*memory_, one, memory_->granule())});
  EXPECT_TRUE(more.empty());
  ASSERT_TRUE(memory_->snapshot(found, Writers::some));
  EXPECT_TRUE(taken(*memory_).empty());
}

TEST_P(tracked_memory_test, does_not_report_what_the_library_published) {
  const RangeSet all{{0, memory_->nbytes()}};
  std::memset(memory_->library(), 3, memory_->nbytes());
  ASSERT_TRUE(memory_->publish(all, Writers::some));
  EXPECT_EQ(memory_->view()[memory_->nbytes() - 1], std::byte{3});
  EXPECT_TRUE(taken(*memory_).empty());
  memory_->library()[1] = std::byte{4};
  ASSERT_TRUE(memory_->publish({{1, 2}}, Writers::some));
  EXPECT_EQ(memory_->view()[1], std::byte{4});
  EXPECT_EQ(memory_->view()[2], std::byte{3});
  EXPECT_TRUE(taken(*memory_).empty());
}

INSTANTIATE_TEST_SUITE_P(
    each, tracked_memory_test,
    testing::Values(kind{TrackingMechanism::pages, 5},
                    kind{TrackingMechanism::pages, 100 * k_kib + 3},
                    kind{TrackingMechanism::pages, 2 * k_mib},
                    kind{TrackingMechanism::pages, 7 * k_mib + 12345},
                    kind{TrackingMechanism::pages, 7 * k_mib + 12345, Granularity::page},
                    kind{TrackingMechanism::bytes, 5}, kind{TrackingMechanism::bytes, 3000},
                    kind{TrackingMechanism::bytes, 100 * k_kib + 3},
                    kind{TrackingMechanism::hashes, 5}, kind{TrackingMechanism::hashes, 64 * k_kib},
                    kind{TrackingMechanism::hashes, 3 * k_mib + 12345}),
    kind_name);

TEST(tracked_memory, take_all_returns_the_ranges_of_each_memory) {
  std::vector<memory_pointer> all;
  std::vector<RangeSet> found(60);
  std::vector<TrackedMemory::Taking> each;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const std::size_t nbytes = i % 3 == 0 ? 500 : i % 3 == 1 ? 64 * k_kib + i : 2 * k_mib + i;
    all.push_back(make_tracked({.nbytes = nbytes}));
    ASSERT_NE(all.back(), nullptr);
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i % 2 == 0) {
      all[i]->view()[i] = std::byte{1};
    }
    if (i % 5 != 0) {
      each.push_back({all[i].get(), &found[i]});
    }
  }
  take_all(each);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i % 5 == 0) {
      EXPECT_TRUE(found[i].empty());
      all[i]->take(found[i]);  // the scan of the others may have found it
    }
    EXPECT_EQ(!found[i].empty(), i % 2 == 0) << i;
    EXPECT_EQ(found[i].overlaps({i, i + 1}), i % 2 == 0) << i;
    EXPECT_LE(found[i].nbytes(), all[i]->granule());
  }
  take_all({});
}

TEST(tracked_memory, exceeding_the_capacity_is_an_error) {
  for (const auto by :
       {TrackingMechanism::pages, TrackingMechanism::bytes, TrackingMechanism::hashes}) {
    if (by == TrackingMechanism::pages && !pages_are_reported()) {
      continue;
    }
    for (const auto nbytes : {SIZE_MAX, SIZE_MAX / 2, std::size_t{1} << 47}) {
      auto made = create_memory({.nbytes = nbytes, .mechanism = by});
      ASSERT_FALSE(made) << mechanism_name(by) << nbytes;
      EXPECT_EQ(made.failure().code(), ISTHMUS_ERROR_OUT_OF_MEMORY) << made.failure().message();
    }
  }
}

}  // namespace
}  // namespace isthmus::tracking
