// SPDX-License-Identifier: Apache-2.0
// The reports that the pages of one memory keep until they are taken.

#include "tracking/watched_pages.hpp"

#include <gtest/gtest.h>

#include <optional>

#include "os/virtual_memory.hpp"
#include "tracked_fixture.hpp"

namespace isthmus::tracking {
namespace {

class watched_pages_test : public with_pages {
 protected:
  void SetUp() override {
    with_pages::SetUp();
    if (IsSkipped()) {
      return;
    }
    auto written_pages = os::WrittenPages::only();
    ASSERT_TRUE(written_pages);
    written_pages_ = *written_pages;
    auto pages = os::map_twice(nbytes_, os::page_size());
    ASSERT_TRUE(pages);
    both_ = *pages;
    os::populate_pages(view(), nbytes_);
    pages_.emplace(PageMappings{view(), static_cast<std::byte*>(both_->second), nbytes_},
                   Request{.nbytes = nbytes_ - 5});
    pages_->reserve_records();
  }
  void TearDown() override {
    if (both_) {
      os::unmap_twice(*both_, nbytes_);
    }
  }
  [[nodiscard]] std::byte* view() const { return static_cast<std::byte*>(both_->first); }
  RangeSet taken_now() {
    RangeSet found;
    pages_->take(*written_pages_, found);
    return found;
  }

  const std::size_t page_ = os::page_size();
  const std::size_t nbytes_ = 16 * page_;
  os::WrittenPages* written_pages_ = nullptr;
  std::optional<os::MappedTwice> both_;
  std::optional<WatchedPages> pages_;
};

TEST_F(watched_pages_test, returns_each_record_once) {
  EXPECT_EQ(pages_->granule(), page_);
  EXPECT_TRUE(taken_now().empty());
  pages_->record(view(), view() + page_);
  pages_->record(view() + 3 * page_, view() + 5 * page_);
  EXPECT_EQ(taken_now(), (RangeSet{{0, page_}, {3 * page_, 5 * page_}}));
  EXPECT_TRUE(taken_now().empty());
}

TEST_F(watched_pages_test, clips_records_to_the_memory) {
  pages_->record(view() - page_, view() + page_);
  pages_->record(view() + 15 * page_, view() + 17 * page_);
  pages_->record(view() + 16 * page_, view() + 17 * page_);
  EXPECT_EQ(taken_now(), (RangeSet{{0, page_}, {15 * page_, nbytes_ - 5}}));
}

TEST_F(watched_pages_test, keeps_records_when_capacity_is_reserved_again) {
  pages_->record(view(), view() + page_);
  pages_->reserve_records();
  pages_->record(view() + 2 * page_, view() + 3 * page_);
  EXPECT_EQ(taken_now(), (RangeSet{{0, page_}, {2 * page_, 3 * page_}}));
}

TEST_F(watched_pages_test, counts_as_written_where_a_scan_failed) {
  pages_->record(view(), view() + page_);
  pages_->record_all();
  EXPECT_EQ(taken_now(), (RangeSet{{0, nbytes_ - 5}}));
  EXPECT_TRUE(taken_now().empty());
}

TEST_F(watched_pages_test, counts_as_unwritten_once_it_is_watched) {
  ASSERT_TRUE(written_pages_->watch(view(), nbytes_));
  view()[page_] = std::byte{1};
  ASSERT_TRUE(pages_->begin(*written_pages_));
  view()[7 * page_] = std::byte{1};
  ASSERT_TRUE(written_pages_->scan(view(), nbytes_, [this](void* begin, void* end) {
    pages_->record(static_cast<std::byte*>(begin), static_cast<std::byte*>(end));
  }));
  EXPECT_EQ(taken_now(), (RangeSet{{7 * page_, 8 * page_}}));
}

}  // namespace
}  // namespace isthmus::tracking
