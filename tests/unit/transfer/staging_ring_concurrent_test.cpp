// SPDX-License-Identifier: Apache-2.0
#include "transfer/staging_ring.hpp"

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

#include "backend/drivers.hpp"

namespace isthmus {
namespace {

class ring_test : public ::testing::Test {
 protected:
  StagingRing& ring() { return ring_; }
  std::vector<StagingRing::SlotPair*> take_all() {
    std::vector<StagingRing::SlotPair*> all;
    while (auto* const each = ring_.try_acquire()) {
      all.push_back(each);
    }
    return all;
  }
  void give_back(const std::vector<StagingRing::SlotPair*>& all) {
    for (auto* each : all) {
      ring_.release(*each);
    }
  }
  // Returns some time after another thread began to wait.
  void await_asking() {
    while (!ring_.must_release_one()) {
      std::this_thread::yield();
    }
  }

 private:
  StagingRing ring_{**find_device("host")};
};

TEST_F(ring_test, has_a_bounded_number_of_slots_each_with_its_own_memory) {
  const auto all = take_all();
  EXPECT_EQ(all.size(), StagingRing::k_max_slot_pairs);
  EXPECT_EQ(ring().reserve(), nullptr);
  std::set<std::byte*> slots;
  for (const auto* each : all) {
    ASSERT_TRUE(each->queue);
    for (const auto& slot : each->slots) {
      slots.insert(slot.memory);
    }
  }
  EXPECT_EQ(slots.size(), all.size() * StagingRing::k_slots);
  std::byte* before = nullptr;
  for (auto* each : slots) {
    EXPECT_TRUE(before == nullptr || each - before >= std::ptrdiff_t{StagingRing::k_slot_bytes});
    before = each;
  }
  give_back(all);
}

TEST_F(ring_test, creates_no_more_slots_than_are_used_at_a_time) {
  ASSERT_TRUE(ring().is_available());
  auto& first = ring().acquire();
  ring().release(first);
  for (int again = 0; again < 3; ++again) {
    auto& same = ring().acquire();
    EXPECT_EQ(&same, &first);
    ring().release(same);
  }
}

TEST_F(ring_test, requests_one_release_for_each_waiting_thread) {
  const auto all = take_all();
  EXPECT_FALSE(ring().must_release_one());
  std::thread waits([this] { ring().release(ring().acquire()); });
  await_asking();
  EXPECT_FALSE(ring().must_release_one()) << "one lane was promised already";
  ring().release(*all.front());
  waits.join();
  EXPECT_FALSE(ring().must_release_one());
  give_back({all.begin() + 1, all.end()});
}

TEST_F(ring_test, requests_as_many_releases_as_threads_wait) {
  const auto all = take_all();
  std::vector<std::thread> waiting;
  for (int i = 0; i < 2; ++i) {
    waiting.emplace_back([this] { ring().release(ring().acquire()); });
  }
  await_asking();
  await_asking();
  EXPECT_FALSE(ring().must_release_one());
  give_back(all);
  for (auto& each : waiting) {
    each.join();
  }
}

TEST_F(ring_test, serves_more_threads_than_it_has_slots) {
  ASSERT_TRUE(ring().is_available());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 2 * StagingRing::k_max_slot_pairs; ++i) {
    threads.emplace_back([this] {
      for (int round = 0; round < 200; ++round) {
        auto& own = ring().acquire();
        *own.slots.front().memory = std::byte{1};  // a data race if another thread has it
        ring().release(own);
      }
    });
  }
  for (auto& each : threads) {
    each.join();
  }
  const auto all = take_all();
  EXPECT_EQ(all.size(), StagingRing::k_max_slot_pairs);
  give_back(all);
}

}  // namespace
}  // namespace isthmus
