// SPDX-License-Identifier: Apache-2.0
// Written pages as the kernel reports them: everything that was written, once, and nothing else.

#include "os/written_pages.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>
#include <set>
#include <thread>

#include "core/range_set.hpp"
#include "core/undo.hpp"
#include "os/virtual_memory.hpp"

namespace isthmus::os {
namespace {

class written_pages_test : public testing::Test {
 protected:
  static constexpr std::size_t k_bytes = std::size_t{8} << 20;

  void SetUp() override {
    auto found = WrittenPages::only();
    if (!found) {
      GTEST_SKIP() << found.failure().message();
    }
    kernel_ = *found;
    auto made = map_twice(k_bytes, k_huge_page);
    ASSERT_TRUE(made);
    pages_ = *made;
  }
  void TearDown() override {
    if (pages_.first != nullptr) {
      unmap_twice(pages_, k_bytes);
    }
  }
  [[nodiscard]] std::byte* seen() const { return static_cast<std::byte*>(pages_.first); }
  [[nodiscard]] std::byte* behind() const { return static_cast<std::byte*>(pages_.second); }
  void watch() const { ASSERT_TRUE(kernel_->watch(seen(), k_bytes)); }
  [[nodiscard]] RangeSet taken() const {
    RangeSet found;
    EXPECT_TRUE(kernel_->scan(seen(), k_bytes, [&](void* begin, void* end) {
      found.add({static_cast<std::size_t>(static_cast<std::byte*>(begin) - seen()),
                 static_cast<std::size_t>(static_cast<std::byte*>(end) - seen())});
    }));
    return found;
  }
  [[nodiscard]] static RangeSet page_of(std::size_t at) {
    const auto first = at / page_size() * page_size();
    return {{first, first + page_size()}};
  }
  // False where the kernel provides none.
  [[nodiscard]] bool have_huge_pages() const {
    prefer_huge_pages(seen(), k_bytes);
    for (std::size_t at = 0; at < k_bytes; at += k_huge_page) {
      seen()[at] = std::byte{1};
    }
    return collapse_pages(seen(), k_bytes);
  }

  WrittenPages* kernel_ = nullptr;
  MappedTwice pages_;
};

TEST_F(written_pages_test, reports_a_write_once) {
  watch();
  EXPECT_TRUE(taken().empty());
  seen()[5 * page_size() + 7] = std::byte{1};
  seen()[5 * page_size() + 9] = std::byte{1};
  EXPECT_EQ(taken(), page_of(5 * page_size()));
  EXPECT_TRUE(taken().empty());
  seen()[5 * page_size()] = std::byte{1};  // the same value
  EXPECT_EQ(taken(), page_of(5 * page_size()));
}

TEST_F(written_pages_test, does_not_report_reads_and_earlier_writes) {
  std::memset(seen(), 3, k_bytes);
  watch();
  EXPECT_TRUE(taken().empty());
  EXPECT_EQ(std::count(seen(), seen() + k_bytes, std::byte{3}), std::ptrdiff_t{k_bytes});
  EXPECT_TRUE(taken().empty());
}

TEST_F(written_pages_test, does_not_report_writes_through_the_other_mapping) {
  watch();
  std::memset(behind(), 5, k_bytes);
  EXPECT_EQ(seen()[k_bytes / 2], std::byte{5});
  EXPECT_TRUE(taken().empty());
  seen()[0] = std::byte{1};
  EXPECT_EQ(behind()[0], std::byte{1});
  EXPECT_EQ(taken(), page_of(0));
}

TEST_F(written_pages_test, reports_writes_of_the_kernel) {
  watch();
  const int zeros = open("/dev/zero", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(zeros, 0);
  EXPECT_EQ(read(zeros, seen() + 3 * page_size() + 1, page_size()),
            static_cast<ssize_t>(page_size()));
  close(zeros);
  EXPECT_EQ(taken(), (RangeSet{{3 * page_size(), 5 * page_size()}}));
}

// Also more ranges than one call of the kernel returns.
TEST_F(written_pages_test, random_writes_against_a_model) {
  watch();
  std::mt19937_64 random{11};
  for (const std::size_t writes : {1U, 30U, 3000U, 0U, 700U}) {
    RangeSet want;
    for (std::size_t i = 0; i < writes; ++i) {
      const auto at = random() % k_bytes;
      seen()[at] = std::byte{2};
      want.add(page_of(at));
    }
    EXPECT_EQ(taken(), want) << writes;
  }
  for (std::size_t at = 0; at < k_bytes; at += 2 * page_size()) {
    seen()[at] = std::byte{1};
  }
  EXPECT_EQ(taken().size(), k_bytes / page_size() / 2);
}

TEST_F(written_pages_test, of_a_part_leave_the_rest_as_it_is) {
  watch();
  seen()[0] = std::byte{1};
  seen()[k_bytes - 1] = std::byte{1};
  std::size_t runs = 0;
  EXPECT_TRUE(kernel_->scan(seen(), k_bytes / 2, [&](void*, void*) { ++runs; }));
  EXPECT_EQ(runs, 1U);
  EXPECT_EQ(taken(), page_of(k_bytes - 1));
}

TEST_F(written_pages_test, huge_pages_are_reported_whole_and_stay_huge) {
  if (!have_huge_pages()) {
    GTEST_SKIP() << "the kernel gave no huge pages";
  }
  watch();
  EXPECT_TRUE(taken().empty());
  for (int round = 0; round < 3; ++round) {
    seen()[k_huge_page + 5] = std::byte{1};
    EXPECT_EQ(taken(), (RangeSet{{k_huge_page, 2 * k_huge_page}}));
    EXPECT_TRUE(taken().empty());
  }
  ASSERT_TRUE(kernel_->split(seen() + k_huge_page, k_huge_page));
  seen()[k_huge_page + 5] = std::byte{1};
  seen()[5] = std::byte{1};
  auto want = page_of(k_huge_page + 5);
  want.add(ByteRange{0, k_huge_page});
  EXPECT_EQ(taken(), want);
}

TEST_F(written_pages_test, split_huge_pages_are_reported_whole_again) {
  if (!have_huge_pages()) {
    GTEST_SKIP() << "the kernel gave no huge pages";
  }
  watch();
  auto* const part = seen() + k_huge_page;
  ASSERT_TRUE(kernel_->split(part, k_huge_page));
  part[5] = std::byte{7};
  ASSERT_TRUE(kernel_->merge(part, k_huge_page));
  EXPECT_EQ(part[5], std::byte{7});
  EXPECT_EQ(taken(), (RangeSet{{k_huge_page, 2 * k_huge_page}}));
  EXPECT_TRUE(taken().empty());
  part[k_huge_page - 1] = std::byte{1};
  EXPECT_EQ(taken(), (RangeSet{{k_huge_page, 2 * k_huge_page}}));
}

TEST_F(written_pages_test, refuses_what_cannot_be_watched) {
  EXPECT_FALSE(kernel_->watch(seen() + 1, page_size()));
  auto none = reserve_addresses(page_size(), page_size());
  ASSERT_TRUE(none);
  unmap_pages(*none, page_size());
  EXPECT_FALSE(kernel_->watch(*none, page_size()));
}

// The child would inspect its parent's pages.
TEST_F(written_pages_test, are_not_there_in_a_forked_child) {
  watch();
  seen()[0] = std::byte{1};
  const pid_t child = fork();
  if (child == 0) {
    const bool refused = !WrittenPages::only() && !kernel_->watch(seen(), k_bytes) &&
                         !kernel_->scan(seen(), k_bytes, [](void*, void*) {}) &&
                         !kernel_->split(seen(), k_bytes) && !kernel_->merge(seen(), k_bytes);
    _exit(refused ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(taken(), page_of(0));
}

// Scanning before copying never misses a write that happens meanwhile.
TEST_F(written_pages_test, lose_nothing_beside_threads_that_write) {
  using word = std::uint64_t;
  constexpr std::size_t k_words = k_bytes / sizeof(word), k_writes = 40'000;
  watch();
  auto* const words = reinterpret_cast<word*>(seen());
  std::vector<word> copy(k_words);
  const auto bring_over = [&] {
    for (const auto& each : taken()) {
      for (auto at = each.begin / sizeof(word); at < each.end / sizeof(word); ++at) {
        copy[at] = std::atomic_ref{words[at]}.load(std::memory_order_relaxed);
      }
    }
  };
  std::atomic<int> at_work{2};
  std::vector<std::thread> writers;
  for (unsigned number = 0; number < 2; ++number) {
    writers.emplace_back([&, number] {
      std::mt19937_64 random{number};
      for (std::size_t i = 0; i < k_writes; ++i) {
        std::atomic_ref{words[random() % k_words]}.store(random(), std::memory_order_relaxed);
      }
      --at_work;
    });
  }
  while (at_work != 0) {
    bring_over();
  }
  for (auto& each : writers) {
    each.join();
  }
  bring_over();
  EXPECT_EQ(std::memcmp(copy.data(), words, k_bytes), 0);
}

}  // namespace
}  // namespace isthmus::os
