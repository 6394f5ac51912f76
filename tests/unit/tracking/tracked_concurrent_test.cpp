// SPDX-License-Identifier: Apache-2.0
// Threads write while others scan, copy, request chunks, create memory and fork: no write is lost.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <random>

#include "tracked_fixture.hpp"
#include "tracking/take_all.hpp"
#include "tracking/unwatched.hpp"

namespace isthmus::tracking {
namespace {

using namespace std::chrono_literals;
using word = std::uint64_t;

class tracked_concurrent : public testing::TestWithParam<TrackingMechanism> {
 protected:
  void SetUp() override {
    if (GetParam() == TrackingMechanism::pages && !pages_are_reported()) {
      GTEST_SKIP();
    }
  }
};

// Writes sparsely, densely, or in one place, at random.
void write_for_a_while(const TrackedMemory& memory, unsigned seed,
                       std::chrono::steady_clock::time_point end) {
  std::mt19937_64 random{seed};
  auto* const words = reinterpret_cast<word*>(memory.view());
  const auto count = memory.nbytes() / sizeof(word);
  while (std::chrono::steady_clock::now() < end) {
    const auto first = random() % count;
    const auto width =
        1 + random() % std::min<std::size_t>(count - first, random() % 2 == 0 ? 8 : 300'000);
    for (int i = 0; i < 200; ++i) {
      std::atomic_ref{words[first + random() % width]}.store(random(), std::memory_order_relaxed);
    }
  }
}

// Of the sizes, the first begins with small pages and the second with huge pages.
void write_and_copy(const Request& request) {
  const auto memory = make_tracked(request);
  bytes copy(memory->nbytes());
  RangeSet owed;
  const auto copy_over = [&](const RangeSet& ranges) {
    for (const auto& each : ranges) {
      copy_unwatched(copy.data() + each.begin, memory->library() + each.begin, each.nbytes());
    }
  };
  const auto bring_over = [&](bool in_parts) {
    if (in_parts) {
      ASSERT_TRUE(memory->snapshot(owed, Writers::some));
      copy_over(owed);
      ASSERT_TRUE(memory->take_in_parts(Writers::some,
                                        [&](const ByteRange&, RangeSet&& found, const std::byte*) {
                                          copy_over(found);
                                          return Result<void>{};
                                        }));
    } else {
      memory->take(owed);
      ASSERT_TRUE(memory->snapshot(owed, Writers::some));
      copy_over(owed);
    }
    owed.clear();
  };
  const auto end = std::chrono::steady_clock::now() + 250ms;
  std::vector<std::thread> writers;
  for (unsigned number = 0; number < 2; ++number) {
    writers.emplace_back([&, number] { write_for_a_while(*memory, number, end); });
  }
  std::mt19937_64 random{9};
  for (int round = 0; std::chrono::steady_clock::now() < end; ++round) {
    bring_over(round % 2 == 0);
    if (round % 50 == 49) {
      const auto at = random() % (memory->nbytes() - 100);
      memory->refine({at, at + 100});
    }
  }
  for (auto& each : writers) {
    each.join();
  }
  bring_over(false);
  EXPECT_TRUE(same(copy, {memory->view(), memory->nbytes()}));
}

TEST_P(tracked_concurrent, loses_nothing_beside_threads_that_write) {
  for (const std::size_t nbytes : {9 * k_mib + 8, 21 * k_mib}) {
    for (const auto copied_by : {CopiedBy::device, CopiedBy::processor}) {
      write_and_copy({.nbytes = nbytes, .mechanism = GetParam(), .copied_by = copied_by});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(each, tracked_concurrent,
                         testing::Values(TrackingMechanism::pages, TrackingMechanism::bytes,
                                         TrackingMechanism::hashes),
                         [](const auto& by) { return mechanism_name(by.param); });

// A scan for one memory also finds writes to others, which must still be reported for those.
TEST_F(with_pages, scans_of_several_threads_find_all) {
  constexpr std::size_t k_memories = 8;
  std::vector<memory_pointer> all;
  for (std::size_t i = 0; i < k_memories; ++i) {
    all.push_back(make(i % 2 == 0 ? 100'000 : 2 * k_mib));
  }
  std::vector<std::thread> threads;
  std::atomic<std::size_t> missed{0};
  for (std::size_t first = 0; first < 2; ++first) {
    threads.emplace_back([&, first] {
      for (int round = 0; round < 2000; ++round) {
        std::array<RangeSet, 2> found;
        auto& low = *all[first];
        auto& high = *all[k_memories - 1 - first];
        low.view()[round] = high.view()[round] = std::byte{1};
        take_all(std::array{TrackedMemory::Taking{&low, &found[0]},
                            TrackedMemory::Taking{&high, &found[1]}});
        missed += (found[0].empty() ? 1U : 0U) + (found[1].empty() ? 1U : 0U);
      }
    });
  }
  threads.emplace_back([&] {
    for (int round = 0; round < 300; ++round) {
      const auto passing = make(round % 2 == 0 ? 70'000 : 2 * k_mib);
      passing->view()[5] = std::byte{1};
      missed += taken(*passing).empty() ? 1U : 0U;
    }
  });
  for (auto& each : threads) {
    each.join();
  }
  EXPECT_EQ(missed, 0U);
}

TEST_F(with_pages, forks_beside_threads_that_create_and_scan) {
  std::atomic<bool> ends{false};
  std::thread other{[&] {
    while (!ends) {
      const auto passing = make(70'000);
      passing->view()[5] = std::byte{1};
      EXPECT_FALSE(taken(*passing).empty());
    }
  }};
  const auto kept = make(100'000);
  for (int round = 0; round < 20; ++round) {
    kept->view()[0] = static_cast<std::byte>(round);
    const pid_t child = fork();
    if (child == 0) {
      const bool is_kept = kept->view()[0] == static_cast<std::byte>(round);
      kept->view()[0] = std::byte{0xff};
      _exit(is_kept ? 0 : 1);
    }
    int status = 1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(kept->view()[0], static_cast<std::byte>(round));
  }
  ends = true;
  other.join();
}

}  // namespace
}  // namespace isthmus::tracking
