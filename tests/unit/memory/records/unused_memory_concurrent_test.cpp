// SPDX-License-Identifier: Apache-2.0
// Threads share a device without enough memory for all of them, through resources that keep free
// memory. No block is given to two callers, and all memory is available again at the end.

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <iterator>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "memory/base/provider.hpp"
#include "memory/pool/pool.hpp"
#include "memory/records/bare_pointers.hpp"
#include "memory/resources/arena_resource.hpp"
#include "memory/resources/fixed_size_resource.hpp"
#include "memory/resources/monotonic_resource.hpp"
#include "support/eventually.hpp"
#include "support/sizes.hpp"
#include "unit/backend/sim_fixture.hpp"

namespace isthmus::unused_memory_concurrent_test {
namespace {

using sim_test::expect_value;
using sim_test::rig;
using support::k_mib;

constexpr std::size_t k_block = k_mib / 2;
constexpr int k_rounds = 300 / support::k_slower;

class sharers {
 public:
  sharers()
      : driver_{make_ref<Provider>(*sim_.test_context, *sim_.test_device, ISTHMUS_KIND_DEVICE)},
        pool_{expect_value(
            Pool::create(*sim_.test_context, *sim_.test_device, ISTHMUS_KIND_DEVICE,
                         {.growth_bytes = k_mib, .max_wait = std::chrono::nanoseconds{0}}))},
        shared_{make_ref<ArenaResource>(*driver_, UINT64_MAX)} {}

  // A resource that all threads share, or a new one that is destroyed after a few blocks.
  Ref<MemoryResource> any(std::uint_fast32_t choice) {
    switch (choice % 6) {
      case 0: return driver_;
      case 1: return pool_;
      case 2: return make_ref<ArenaResource>(*pool_, UINT64_MAX);
      case 3: return make_ref<FixedSizeResource>(*driver_, k_block, std::size_t{2});
      case 4: return make_ref<MonotonicResource>(*shared_, k_block);
      default: return shared_;
    }
  }

  void use(unsigned seed) {
    std::mt19937 random{seed};
    const auto on = expect_value(Queue::create(*sim_.test_context, *sim_.test_device));
    for (int each = 0; each < k_rounds; ++each) {
      const auto from = any(random());
      std::vector<void*> blocks;
      for (auto count = random() % 4; count != 0; --count) {
        auto made = allocate_raw(*from, k_block, 0, *on);
        if (made) {
          blocks.push_back(*made);
          enter(*made);
        } else {
          EXPECT_EQ(made.failure().code(), ISTHMUS_ERROR_OUT_OF_MEMORY);
        }
      }
      for (auto* block : blocks) {
        leave(block);
        EXPECT_TRUE(deallocate_raw(*from, block, k_block, on.get()));
      }
    }
  }

  // A library thread returns the memory that destroyed resources kept.
  void expect_all_can_be_had() {
    EXPECT_TRUE(all_.empty());
    EXPECT_TRUE(support::eventually([this] {
      auto all = allocate_raw(*driver_, 8 * k_mib, 0, *sim_.queue);
      return all && deallocate_raw(*driver_, *all, 8 * k_mib, sim_.queue.get());
    }));
  }

 private:
  // Live blocks must not overlap.
  void enter(void* block) {
    const std::lock_guard hold{lock_};
    const auto begin = address(block);
    const auto next = all_.lower_bound(begin);
    EXPECT_TRUE(next == all_.end() || *next >= begin + k_block);
    EXPECT_TRUE(next == all_.begin() || *std::prev(next) + k_block <= begin);
    all_.insert(begin);
  }
  void leave(void* block) {
    const std::lock_guard hold{lock_};
    all_.erase(address(block));
  }

  rig sim_{"capacity=8MiB"};
  Ref<MemoryResource> driver_;
  Ref<MemoryResource> pool_;
  Ref<MemoryResource> shared_;
  std::mutex lock_;
  std::set<std::uintptr_t> all_;
};

TEST(unused_memory_concurrent, serves_threads_that_take_it_from_one_another) {
  sharers all;
  std::vector<std::thread> threads;
  for (unsigned each = 0; each < 6; ++each) {
    threads.emplace_back([&all, each] { all.use(each); });
  }
  for (auto& each : threads) {
    each.join();
  }
  all.expect_all_can_be_had();
}

}  // namespace
}  // namespace isthmus::unused_memory_concurrent_test
