// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/pool.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

#include "backend/drivers.hpp"
#include "backend/queue.hpp"
#include "core/sizes.hpp"
#include "support/sizes.hpp"

namespace isthmus {
namespace {

using support::k_mib;
using support::k_slower;

class pool_test : public testing::Test {
 protected:
  void SetUp() override {
    auto found = find_device("host");
    ASSERT_TRUE(found);
    device_ = *found;
    auto standard = Platform::default_queue(*device_);
    ASSERT_TRUE(standard);
    queue_ = Ref<Queue>{*standard};
  }
  [[nodiscard]] Ref<Pool> make(Pool::Options how = {}) {
    auto made = Pool::create(queue_->context(), *device_, ISTHMUS_KIND_HOST, how);
    EXPECT_TRUE(made);
    return *std::move(made);
  }
  [[nodiscard]] void* take(Pool& from, std::size_t nbytes, std::size_t alignment = 0) {
    auto got = from.allocate(nbytes, alignment, *queue_);
    EXPECT_TRUE(got) << got.failure().message();
    return *got;
  }

  // Allocates `count` blocks, all live at the same time, and then frees them.
  void take_and_give_all(Pool& from, int count, std::size_t nbytes) {
    std::vector<void*> all;
    for (int each = 0; each < count; ++each) {
      all.push_back(take(from, nbytes));
    }
    for (auto* each : all) {
      ASSERT_TRUE(from.deallocate(each, nbytes, queue_.get()));
    }
  }

  Device* device_ = nullptr;
  Ref<Queue> queue_;
};

TEST_F(pool_test, reuses_the_block_freed_last) {
  const auto from = make();
  for (const std::size_t nbytes : {std::size_t{1}, std::size_t{1000}, 256 * 1024UL, 3 * k_mib}) {
    auto* first = take(*from, nbytes);
    EXPECT_TRUE(from->deallocate(first, nbytes, queue_.get()));
    EXPECT_EQ(take(*from, nbytes), first) << nbytes;
    EXPECT_TRUE(from->deallocate(first, nbytes, queue_.get()));
  }
}

TEST_F(pool_test, blocks_are_aligned_as_requested) {
  const auto from = make();
  for (std::size_t alignment = 1; alignment <= 4 * k_mib; alignment *= 2) {
    for (const std::size_t nbytes :
         {std::size_t{1}, std::size_t{100}, std::size_t{70'000}, k_mib}) {
      auto* got = take(*from, nbytes, alignment);
      EXPECT_EQ(address(got) % std::max<std::size_t>(alignment, 64), 0U) << nbytes;
      EXPECT_TRUE(from->deallocate(got, nbytes, queue_.get()));
    }
  }
}

TEST_F(pool_test, misuse_is_reported_and_changes_nothing) {
  const auto from = make();
  const auto other = make();
  const auto refused = [](Result<void> outcome, const char* says) {
    return !outcome && outcome.failure().code() == ISTHMUS_ERROR_INVALID_ARGUMENT &&
           std::string_view{outcome.failure().message()}.find(says) != std::string_view::npos;
  };
  int local = 0;
  EXPECT_TRUE(refused(from->deallocate(&local, 0, queue_.get()), "not allocated by this pool"));
  EXPECT_TRUE(refused(from->deallocate(nullptr, 0, queue_.get()), "not allocated by this pool"));
  for (const std::size_t nbytes : {std::size_t{100}, std::size_t{5000}, 2 * k_mib}) {
    auto* got = static_cast<std::byte*>(take(*from, nbytes));
    EXPECT_TRUE(refused(from->deallocate(got + 1, 0, queue_.get()), "inside"));
    EXPECT_TRUE(refused(from->deallocate(got + nbytes / 2, 0, queue_.get()), "inside"));
    EXPECT_TRUE(refused(other->deallocate(got, 0, queue_.get()), "not allocated by this pool"));
    EXPECT_TRUE(from->deallocate(got, 0, queue_.get()));
    EXPECT_TRUE(refused(from->deallocate(got, 0, queue_.get()), "before"));
    from->trim(0);
    EXPECT_FALSE(from->deallocate(got, 0, queue_.get()));
  }
}

TEST_F(pool_test, all_memory_returns_to_the_driver) {
  const auto from = make();
  std::vector<std::pair<void*, std::size_t>> all;
  for (std::size_t nbytes = 1; nbytes < 20 * k_mib; nbytes = nbytes * 3 / 2 + 1) {
    all.emplace_back(take(*from, nbytes), nbytes);
  }
  EXPECT_GT(from->usage().held_bytes, 20 * k_mib);
  for (const auto& [pointer, nbytes] : all) {
    EXPECT_TRUE(from->deallocate(pointer, nbytes, queue_.get()));
  }
  EXPECT_GT(from->trim(0), 20 * k_mib);
  EXPECT_EQ(from->usage().held_bytes, 0U);
}

// Writes the owner's number all over a block, which shows that no two blocks overlap.
class shadow {
 public:
  static void own(void* block, std::size_t nbytes, std::uint64_t who) {
    auto* words = static_cast<std::uint64_t*>(block);
    for (std::size_t at = 0; at < nbytes / 8; at += 32) {
      words[at] = who;
    }
    words[nbytes / 8 - 1] = who;
  }
  static bool is_own(const void* block, std::size_t nbytes, std::uint64_t who) {
    const auto* words = static_cast<const std::uint64_t*>(block);
    for (std::size_t at = 0; at < nbytes / 8; at += 32) {
      if (words[at] != who) {
        return false;
      }
    }
    return words[nbytes / 8 - 1] == who;
  }
};

struct block {
  void* start;
  std::size_t nbytes;
  std::uint64_t who;
};

// Blocks passed from one thread to another.
class exchange {
 public:
  void put(const block& given) {
    const std::lock_guard hold{lock_};
    all_.push_back(given);
  }
  bool take(block& out) {
    const std::lock_guard hold{lock_};
    if (all_.empty()) {
      return false;
    }
    out = all_.back();
    all_.pop_back();
    return true;
  }

 private:
  std::mutex lock_;
  std::vector<block> all_;
};

std::size_t random_size(std::mt19937& random) {
  const auto most = random() % 16 == 0 ? 24U : 15U;
  return std::max<std::size_t>(8,
                               (random() % (std::size_t{1} << (4 + random() % (most - 3)))) & ~7U);
}

void churn(Pool& of, Queue& on, exchange& between, unsigned seed, int steps) {
  std::mt19937 random{seed};
  std::vector<block> mine;
  const auto free_one = [&](const block& gone) {
    ASSERT_TRUE(shadow::is_own(gone.start, gone.nbytes, gone.who));
    auto freed = of.deallocate(gone.start, gone.nbytes, &on);
    ASSERT_TRUE(freed) << freed.failure().message();
  };
  for (int step = 0; step < steps; ++step) {
    block other{};
    if (mine.size() < 300 && random() % 2 == 0) {
      const auto nbytes = random_size(random);
      auto got = of.allocate(nbytes, 0, on);
      ASSERT_TRUE(got) << got.failure().message();
      mine.push_back({*got, nbytes, (std::uint64_t{seed} << 32) + static_cast<unsigned>(step)});
      shadow::own(*got, nbytes, mine.back().who);
    } else if (!mine.empty()) {
      std::swap(mine[random() % mine.size()], mine.back());
      if (random() % 2 == 0) {
        between.put(mine.back());
      } else {
        free_one(mine.back());
      }
      mine.pop_back();
    } else if (between.take(other)) {
      free_one(other);
    }
    if (random() % 3 == 0 && between.take(other)) {
      free_one(other);
    }
    if (random() % 20'000 == 0) {
      of.trim(64 * k_mib);
      const auto sound = of.verify();
      ASSERT_TRUE(sound) << sound.failure().message();
    }
  }
  for (const auto& each : mine) {
    free_one(each);
  }
}

TEST_F(pool_test, no_two_blocks_overlap_when_other_threads_free_them) {
  const auto from = make({.growth_bytes = 4 * k_mib});
  exchange between;
  for (unsigned round = 0; round < 4; ++round) {  // new threads reuse the caches of ended ones
    std::vector<std::thread> threads;
    for (unsigned each = 0; each < 3; ++each) {
      threads.emplace_back([&, each] {
        churn(*from, *queue_, between, round * 3 + each + 1, 60'000 / int{k_slower});
      });
    }
    for (auto& each : threads) {
      each.join();
    }
  }
  for (block left{}; between.take(left);) {
    ASSERT_TRUE(from->deallocate(left.start, 0, queue_.get()));
  }
  from->trim(0);
  EXPECT_EQ(from->usage().held_bytes, 0U) << "something is still held";
}

TEST_F(pool_test, one_thread_may_use_more_pools_than_it_has_caches) {
  std::vector<Ref<Pool>> all;
  for (int each = 0; each < 20; ++each) {
    all.push_back(make());
  }
  std::vector<std::pair<Pool*, void*>> taken;
  for (int round = 0; round < 50; ++round) {
    for (const auto& each : all) {
      taken.emplace_back(each.get(), take(*each, 1000));
    }
  }
  for (const auto& [from, pointer] : taken) {
    EXPECT_TRUE(from->deallocate(pointer, 0, queue_.get()));
  }
  for (const auto& each : all) {
    each->trim(0);
    EXPECT_EQ(each->usage().held_bytes, 0U);
  }
}

TEST_F(pool_test, a_pool_may_be_destroyed_while_threads_keep_caches_of_it) {
  auto gone = make();
  auto stays = make();
  EXPECT_TRUE(gone->deallocate(take(*gone, 100), 100, queue_.get()));
  gone = nullptr;
  auto* got = take(*stays, 100);
  EXPECT_TRUE(stays->deallocate(got, 0, queue_.get()));
  auto again = make();
  EXPECT_TRUE(again->deallocate(take(*again, 100), 0, queue_.get()));
}

TEST_F(pool_test, what_a_thread_keeps_for_no_queue_is_found_before_the_limit_is) {
  const auto from = make({.growth_bytes = k_mib, .limit_bytes = 10 * k_mib});
  auto* block = take(*from, 8 * k_mib);
  ASSERT_TRUE(from->deallocate(block, 8 * k_mib, nullptr));
  block = take(*from, 8 * k_mib);
  ASSERT_TRUE(from->deallocate(block, 8 * k_mib, queue_.get()));
}

TEST_F(pool_test, regions_too_short_are_released_for_a_longer_one) {
  const auto from = make({.growth_bytes = 2 * k_mib, .limit_bytes = 6 * k_mib});
  ASSERT_NO_FATAL_FAILURE(take_and_give_all(*from, 3, 2 * k_mib));
  auto* longer = take(*from, 4 * k_mib);
  ASSERT_TRUE(from->deallocate(longer, 4 * k_mib, queue_.get()));
}

TEST_F(pool_test, unsuitable_free_regions_are_released_before_the_pool_grows) {
  const auto from = make({.growth_bytes = k_mib});
  ASSERT_NO_FATAL_FAILURE(take_and_give_all(*from, 4, 8 * k_mib));
  auto* longer = take(*from, 16 * k_mib);
  EXPECT_EQ(from->usage().held_bytes, 32 * k_mib) << "two of four made room";
  ASSERT_TRUE(from->deallocate(longer, 16 * k_mib, queue_.get()));
}

TEST_F(pool_test, trims_to_the_requested_size) {
  const auto from = make({.growth_bytes = k_mib, .initial_bytes = 3 * k_mib});
  EXPECT_EQ(from->trim(SIZE_MAX), 0U);
  EXPECT_EQ(from->trim(3 * k_mib), 0U);
  EXPECT_EQ(from->trim(3 * k_mib - 1), 0U) << "the region is one";
  EXPECT_EQ(from->trim(0), 3 * k_mib);
}

// Sanitizers do not support a fork of a process with several threads.
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
TEST_F(pool_test, a_forked_child_exits_even_if_another_thread_held_a_lock) {
  const auto from = make({.growth_bytes = k_mib});
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (unsigned each = 0; each < 2; ++each) {
    threads.emplace_back([&, each] {
      exchange between;
      for (unsigned round = 0; !stop; ++round) {
        churn(*from, *queue_, between, 2 * round + each + 1, 2000);
      }
      for (block left{}; between.take(left);) {
        EXPECT_TRUE(from->deallocate(left.start, 0, queue_.get()));
      }
    });
  }
  ASSERT_TRUE(from->deallocate(take(*from, 100), 100, queue_.get()));  // makes a thread cache
  for (int each = 0; each < 40; ++each) {
    const auto child = fork();
    if (child == 0) {
      alarm(20);     // a child that hangs is killed
      std::exit(0);  // runs the destructors of this thread's thread-local objects
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  }
  stop = true;
  for (auto& each : threads) {
    each.join();
  }
}
#endif

}  // namespace
}  // namespace isthmus
