// SPDX-License-Identifier: Apache-2.0
// Tracked memory whose written pages the kernel reports: what is specific to it.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <random>

#include "core/undo.hpp"
#include "tracked_fixture.hpp"
#include "tracking/page_costs.hpp"
#include "tracking/take_all.hpp"
#include "tracking/watched_pages.hpp"

namespace isthmus::tracking {
namespace {

class page_memory_test : public with_pages {
 protected:
  static RangeSet page_of(const TrackedMemory& memory, std::size_t at) {
    return {granules(memory, {at, at + 1}, os::page_size())};
  }
  static RangeSet chunk_of(const TrackedMemory& memory, std::size_t at) {
    return {granules(memory, {at, at + 1}, os::k_huge_page)};
  }
  // Memory that begins with huge pages, if the kernel has them.
  static constexpr std::size_t k_large = (PageCosts::k_free_chunks + 2) * os::k_huge_page;
  // False where the kernel has no huge pages.
  static bool is_told_whole(TrackedMemory& memory) {
    memory.view()[0] = std::byte{1};
    return taken(memory) == chunk_of(memory, 0);
  }
};

TEST_F(page_memory_test, is_reported_by_pages_where_it_is_small_or_requested) {
  auto small = make(300'000);
  auto large = make(5 * k_mib + 5000, Granularity::page);
  for (auto* const each : {small.get(), large.get()}) {
    EXPECT_EQ(each->granule(), os::page_size());
    for (const std::size_t at : {std::size_t{0}, std::size_t{70'000}, each->nbytes() - 1}) {
      each->view()[at] = std::byte{1};
      EXPECT_EQ(taken(*each), page_of(*each, at));
      EXPECT_TRUE(taken(*each).empty());
    }
  }
}

TEST_F(page_memory_test, reports_writes_of_the_kernel) {
  const auto memory = make(300'000);
  const int zeros = open("/dev/zero", O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(read(zeros, memory->view() + os::page_size() - 1, 2), 2);
  close(zeros);
  EXPECT_EQ(taken(*memory), (RangeSet{{0, 2 * os::page_size()}}));
}

TEST_F(page_memory_test, does_not_report_writes_of_the_library) {
  const auto memory = make(5 * k_mib);
  std::memset(memory->library(), 9, memory->nbytes());
  EXPECT_EQ(memory->view()[4 * k_mib], std::byte{9});
  EXPECT_TRUE(taken(*memory).empty());
}

TEST_F(page_memory_test, a_refined_part_is_reported_by_pages) {
  const auto memory = make(k_large);
  if (!is_told_whole(*memory)) {
    GTEST_SKIP() << "the kernel has no huge pages";
  }
  memory->refine({3 * k_mib, 7 * k_mib});
  EXPECT_TRUE(taken(*memory).empty());
  for (const auto at : {2 * k_mib + 5, 7 * k_mib + 5}) {
    memory->view()[at] = std::byte{1};
    EXPECT_EQ(taken(*memory), page_of(*memory, at));
  }
  memory->view()[4 * k_mib + 5] = std::byte{1};  // entirely covered by the request
  EXPECT_EQ(taken(*memory), chunk_of(*memory, 4 * k_mib));
  write(*memory, {2 * k_mib, 4 * k_mib});  // remains split after a dense write
  EXPECT_EQ(taken(*memory), (RangeSet{{2 * k_mib, 4 * k_mib}}));
  memory->view()[2 * k_mib] = std::byte{5};
  EXPECT_EQ(taken(*memory), page_of(*memory, 2 * k_mib));
}

TEST_F(page_memory_test, after_coarsening_it_is_reported_whole_again) {
  const auto memory = make(k_large);
  if (!is_told_whole(*memory)) {
    GTEST_SKIP() << "the kernel has no huge pages";
  }
  for (std::size_t at = 0; at < memory->nbytes(); at += 2 * k_mib) {
    memory->refine({at + 10, at + 20});
  }
  memory->coarsen({{5 * k_mib, 5 * k_mib + 1}});
  EXPECT_TRUE(taken(*memory).empty());
  memory->view()[5 * k_mib] = std::byte{1};
  EXPECT_EQ(taken(*memory), page_of(*memory, 5 * k_mib));
  memory->view()[10] = std::byte{1};
  memory->view()[2 * k_mib + 10] = std::byte{1};
  memory->view()[7 * k_mib] = std::byte{1};
  EXPECT_GE(taken(*memory).nbytes(), 4 * k_mib);  // one huge page may remain split
  memory->coarsen({});
  EXPECT_TRUE(taken(*memory).empty());
}

// Writes made before `coarsen` do not affect how a page is watched afterwards.
TEST_F(page_memory_test, after_coarsening_earlier_writes_do_not_refine_it_again) {
  const auto memory = make(k_large);
  if (!is_told_whole(*memory)) {
    GTEST_SKIP() << "the kernel has no huge pages";
  }
  for (std::size_t at = 0; at < memory->nbytes(); at += 2 * k_mib) {
    memory->refine({at + 10, at + 20});
    memory->view()[at] = std::byte{1};
  }
  memory->coarsen({});
  EXPECT_EQ(taken(*memory).nbytes(), (k_large / os::k_huge_page) * os::page_size());
  memory->refine({k_mib, k_mib + 1});
  for (std::size_t at = 0; at < memory->nbytes(); at += 2 * k_mib) {
    memory->view()[at] = std::byte{1};
  }
  EXPECT_EQ(taken(*memory).common(chunk_of(*memory, 0)), page_of(*memory, 0));
}

TEST_F(page_memory_test, writes_before_a_refinement_are_reported) {
  const auto memory = make(k_large);
  memory->view()[k_mib] = std::byte{1};
  memory->refine({100, 200});
  EXPECT_TRUE(taken(*memory).overlaps({k_mib, k_mib + 1}));
  EXPECT_TRUE(taken(*memory).empty());
}

TEST_F(page_memory_test, sparse_writes_are_soon_reported_by_pages_and_dense_ones_are_not) {
  const auto memory = make_tracked(
      {.nbytes = k_large, .mechanism = TrackingMechanism::pages, .copied_by = CopiedBy::processor});
  if (!is_told_whole(*memory)) {
    GTEST_SKIP() << "the kernel has no huge pages";
  }
  bytes copy(memory->nbytes());
  std::mt19937_64 random{5};
  const auto round = [&](std::size_t writes, std::size_t first, std::size_t last) {
    for (std::size_t i = 0; i < writes; ++i) {
      memory->view()[first + random() % (last - first)] = static_cast<std::byte>(random());
    }
    const auto found = taken(*memory);
    for (const auto& each : found) {
      std::memcpy(copy.data() + each.begin, memory->view() + each.begin, each.nbytes());
    }
    EXPECT_TRUE(same(copy, {memory->view(), memory->nbytes()}));
    EXPECT_TRUE(memory->snapshot(found, Writers::some));
    return found.nbytes();
  };
  for (std::size_t i = 0; i < 60; ++i) {  // many, if faults are slow on this machine
    round(4, 0, 2 * k_mib);
  }
  EXPECT_LE(round(4, 0, 2 * k_mib), 4 * os::page_size());
  EXPECT_EQ(round(5000, 0, 2 * k_mib), 2 * k_mib);
  EXPECT_EQ(round(1, 0, 2 * k_mib), 2 * k_mib);  // reported by the huge page again
}

TEST_F(page_memory_test, little_memory_is_reported_by_pages_until_it_is_written_densely_again) {
  const auto memory = make(4 * k_mib);
  for (int round = 0; round < 2; ++round) {
    memory->view()[3 * k_mib + 5] = std::byte{1};
    EXPECT_EQ(taken(*memory), page_of(*memory, 3 * k_mib + 5));
    write(*memory, {0, 2 * k_mib});
    EXPECT_EQ(taken(*memory), (RangeSet{{0, 2 * k_mib}}));
    ASSERT_TRUE(memory->snapshot({{0, 4 * k_mib}}, Writers::some));
  }
  memory->view()[5] = std::byte{1};
  const auto found = taken(*memory);  // a small page if the kernel has no huge pages
  EXPECT_TRUE(found == chunk_of(*memory, 5) || found == page_of(*memory, 5));
  EXPECT_EQ(memory->granule_of(found), found.nbytes());
}

// So also the end of the memory is copied as a huge page if it is always written.
TEST_F(page_memory_test, a_partial_huge_page_is_reported_as_a_whole_if_it_is_written_densely) {
  for (const auto nbytes : {k_min_huge_bytes, 3 * k_mib + 5, k_large - k_mib - 5}) {
    const auto memory = make(nbytes);
    const RangeSet last{{(nbytes - 1) / os::k_huge_page * os::k_huge_page, nbytes}};
    for (int round = 0; round < 3; ++round) {
      write(*memory, *last.begin());
      EXPECT_EQ(taken(*memory), last);
    }
    memory->view()[nbytes - 1] = std::byte{1};
    const auto found = taken(*memory);
    EXPECT_TRUE(found == last || found == page_of(*memory, nbytes - 1)) << nbytes;
    EXPECT_GE(memory->granule_of(found), found.nbytes());
    memory->refine({nbytes - 10, nbytes});
    EXPECT_TRUE(taken(*memory).empty());
    memory->view()[nbytes - 1] = std::byte{2};
    EXPECT_EQ(taken(*memory), page_of(*memory, nbytes - 1));
    memory->coarsen({});
    EXPECT_TRUE(taken(*memory).empty());
  }
}

TEST_F(page_memory_test, less_than_a_huge_page_is_always_reported_by_pages_if_it_is_little) {
  const auto memory = make(k_min_huge_bytes - 1);
  EXPECT_EQ(memory->granule(), os::page_size());
  for (int round = 0; round < 3; ++round) {
    write(*memory, {0, memory->nbytes()});
    EXPECT_EQ(taken(*memory).nbytes(), memory->nbytes());
    memory->view()[300'000] = std::byte{1};
    EXPECT_EQ(taken(*memory), page_of(*memory, 300'000));
  }
}

TEST_F(page_memory_test, knows_the_granule_of_each_report_until_it_is_copied) {
  const auto memory = make(k_large);
  if (!is_told_whole(*memory)) {
    GTEST_SKIP() << "the kernel has no huge pages";
  }
  const RangeSet byte{{5, 6}}, far_byte{{7 * k_mib, 7 * k_mib + 1}};
  EXPECT_EQ(memory->granule_of(byte), os::k_huge_page);
  EXPECT_EQ(memory->granule_of(far_byte), os::page_size());
  ASSERT_TRUE(memory->snapshot(byte, Writers::some));
  memory->refine({100, 200});
  EXPECT_EQ(memory->granule_of(byte), os::k_huge_page);
  ASSERT_TRUE(memory->snapshot({{0, 3 * k_mib}}, Writers::some));
  EXPECT_EQ(memory->granule_of(byte), os::page_size());
  memory->view()[0] = std::byte{1};
  EXPECT_EQ(memory->granule_of(taken(*memory)), os::page_size());
}

TEST_F(page_memory_test, a_refined_part_remains_small_after_dense_writes) {
  const auto memory = make(4 * k_mib);
  memory->refine({100, 200});
  for (int round = 0; round < 3; ++round) {
    write(*memory, {0, 2 * k_mib});
    EXPECT_EQ(taken(*memory), (RangeSet{{0, 2 * k_mib}}));
    memory->view()[k_mib] = std::byte{1};
    EXPECT_EQ(taken(*memory), page_of(*memory, k_mib));
  }
}

TEST_F(page_memory_test, without_huge_pages_is_reported_by_small_ones) {
  ASSERT_EQ(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0), 0);
  const Undo again{[] { prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0); }};
  const auto memory = make(5 * k_mib);
  EXPECT_TRUE(taken(*memory).empty());
  for (int round = 0; round < 3; ++round) {
    write(*memory, {0, memory->nbytes()});
    EXPECT_EQ(taken(*memory), (RangeSet{{0, memory->nbytes()}}));
    memory->view()[3 * k_mib] = std::byte{1};
    EXPECT_EQ(taken(*memory), page_of(*memory, 3 * k_mib));
  }
}

TEST_F(page_memory_test, more_than_the_machine_has_is_an_error) {
  auto made =
      create_memory({.nbytes = std::size_t{1} << 43, .mechanism = TrackingMechanism::pages});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.failure().code(), ISTHMUS_ERROR_OUT_OF_MEMORY) << made.failure().message();
}

TEST_F(page_memory_test, is_created_and_destroyed_by_thousands) {
  std::vector<memory_pointer> live;
  for (std::size_t i = 0; i < 10'000; ++i) {
    live.push_back(make(64 << 10));
    ASSERT_NE(live.back(), nullptr);
  }
  for (std::size_t i = 0; i < live.size(); i += 1000) {
    live[i]->view()[i] = std::byte{1};
  }
  std::vector<RangeSet> found(live.size());
  std::vector<TrackedMemory::Taking> each;
  for (std::size_t i = 0; i < live.size(); ++i) {
    each.push_back({live[i].get(), &found[i]});
  }
  take_all(each);
  for (std::size_t i = 0; i < live.size(); ++i) {
    EXPECT_EQ(found[i], i % 1000 == 0 ? page_of(*live[i], i) : RangeSet{});
  }
  std::shuffle(live.begin(), live.end(), std::mt19937_64{1});
  live.resize(live.size() / 2);
  for (int i = 0; i < 1000; ++i) {
    const auto again = make(100'000);
    EXPECT_EQ(again->view()[50'000], std::byte{0});
    write(*again, {0, 100'000});
  }
  for (int i = 0; i < 20; ++i) {
    const auto again = make(3 * k_mib);
    EXPECT_EQ(again->view()[2 * k_mib + 5], std::byte{0});
    EXPECT_TRUE(taken(*again).empty());
    write(*again, {0, again->nbytes()});
    EXPECT_EQ(taken(*again), (RangeSet{{0, again->nbytes()}}));
  }
}

// Run in a child: reads and writes the memory through both mappings. The child's own copies must
// hold what it wrote.
bool is_private(TrackedMemory& memory) {
  RangeSet written;
  memory.take(written);
  const bool is_whole = written == RangeSet{{0, memory.nbytes()}};
  const bool is_kept = memory.view()[1] == std::byte{7};
  memory.view()[0] = std::byte{2};
  memory.library()[memory.nbytes() - 1] = std::byte{2};
  return is_whole && is_kept && memory.view()[0] == std::byte{2};
}

TEST_F(page_memory_test, is_a_forked_childs_own) {
  auto small = make(100'000);
  auto large = make(5 * k_mib);
  for (auto* const each : {small.get(), large.get()}) {
    each->view()[1] = std::byte{7};
    taken(*each);
    each->view()[1] = std::byte{7};
  }
  const pid_t child = fork();
  if (child == 0) {
    bool is_right = is_private(*small) && is_private(*large);
    const pid_t grandchild = fork();
    if (grandchild == 0) {
      _exit(is_right && small->view()[0] == std::byte{2} ? 0 : 1);
    }
    int status = 1;
    waitpid(grandchild, &status, 0);
    auto made = create_memory({.nbytes = k_mib});
    is_right = is_right && status == 0 && made &&
               (*made)->mechanism() == TrackingMechanism::hashes &&
               !create_memory({.nbytes = k_mib, .mechanism = TrackingMechanism::pages});
    small.reset();
    large.reset();
    _exit(is_right ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  for (auto* const each : {small.get(), large.get()}) {
    EXPECT_EQ(each->view()[0], std::byte{0});
    EXPECT_EQ(each->view()[1], std::byte{7});
    EXPECT_EQ(each->view()[each->nbytes() - 1], std::byte{0});
    EXPECT_TRUE(taken(*each).overlaps({1, 2}));
    EXPECT_TRUE(taken(*each).empty());
  }
}

}  // namespace
}  // namespace isthmus::tracking
