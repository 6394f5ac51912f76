#include "transfer/pinned_slots.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "backend/drivers.hpp"

namespace isthmus {
namespace {

constexpr auto k_unit = pinned_slots::k_unit_bytes;

// On the host's device, whose events are the test's own here.
class pinned_slots_test : public ::testing::Test {
 protected:
  using slot = pinned_slots::slot;
  // One that the test completes.
  struct flight {
    slot memory;
    ref<library_event> ended = make_ref<library_event>();
  };

  [[nodiscard]] std::vector<slot> take_all(std::size_t nbytes) {
    std::vector<slot> all;
    for (auto each = slots_.take(nbytes); each.memory != nullptr; each = slots_.take(nbytes)) {
      all.push_back(each);
    }
    return all;
  }
  void give_back(const std::vector<slot>& all) {
    for (const auto& each : all) {
      slots_.give_back(each);
    }
  }
  [[nodiscard]] flight fly(std::size_t nbytes) {
    flight made{slots_.take(nbytes)};
    if (made.memory.memory != nullptr) {
      slots_.keep_till(made.memory, made.ended);
    }
    return made;
  }
  void TearDown() override {  // none was lost
    const auto all = take_all(1);
    EXPECT_EQ(all.size(), pinned_slots::k_units);
    give_back(all);
  }

  pinned_slots slots_{**find_device("host")};
};

TEST_F(pinned_slots_test, have_as_much_memory_as_they_say_and_none_in_common) {
  for (const auto nbytes : {std::size_t{1}, k_unit, k_unit + 1, pinned_slots::k_most_bytes}) {
    const auto each_has = (nbytes + k_unit - 1) / k_unit;
    auto all = take_all(nbytes);
    EXPECT_EQ(all.size(), pinned_slots::k_units / each_has) << nbytes;
    for (std::size_t i = 0; i < all.size(); ++i) {
      std::memset(all[i].memory, static_cast<int>(i + 1), nbytes);
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(all[i].memory[0], static_cast<std::byte>(i + 1));
      EXPECT_EQ(all[i].memory[nbytes - 1], static_cast<std::byte>(i + 1));
    }
    give_back(all);
  }
}

TEST_F(pinned_slots_test, the_one_that_was_just_used_comes_next) {
  auto first = fly(k_unit);
  auto second = fly(k_unit);
  EXPECT_NE(second.memory.memory, first.memory.memory) << "in flight";
  second.ended->finish({});
  auto third = fly(k_unit);
  EXPECT_EQ(third.memory.memory, second.memory.memory);
  third.ended->finish(fail(ISTHMUS_ERROR_DEVICE_LOST, "it went wrong"));
  auto fourth = slots_.take(k_unit);
  EXPECT_EQ(fourth.memory, third.memory.memory) << "a copy that failed has ended, too";
  slots_.give_back(fourth);
  first.ended->finish({});
}

TEST_F(pinned_slots_test, give_none_while_all_are_in_flight) {
  std::vector<flight> all;
  for (std::size_t i = 0; i < pinned_slots::k_units; ++i) {
    all.push_back(fly(1));
  }
  EXPECT_EQ(slots_.take(1).memory, nullptr);
  all[1].ended->finish({});
  EXPECT_EQ(slots_.take(1).memory, nullptr) << "the oldest is asked, and no other";
  all[0].ended->finish({});
  EXPECT_EQ(slots_.take(3 * k_unit).memory, nullptr);
  auto both = slots_.take(2 * k_unit);
  EXPECT_EQ(both.memory, all[0].memory.memory);
  slots_.give_back(both);
  for (auto& each : all) {
    each.ended->finish({});
  }
}

// Against a model that knows which bytes are whose.
TEST_F(pinned_slots_test, at_random_no_two_have_the_same_memory) {
  std::mt19937 random{3};
  std::vector<flight> live;
  for (int step = 0; step < 20000; ++step) {
    if (!live.empty() && random() % 2 == 0) {
      const auto at = live.begin() + static_cast<std::ptrdiff_t>(random() % live.size());
      at->ended->finish({});
      live.erase(at);
      continue;
    }
    const auto nbytes = 1 + random() % pinned_slots::k_most_bytes;
    auto made = fly(nbytes);
    if (made.memory.memory == nullptr) {
      continue;
    }
    const auto units = (nbytes + k_unit - 1) / k_unit;
    EXPECT_EQ(std::popcount(made.memory.units), static_cast<int>(units));
    for (const auto& each : live) {
      ASSERT_EQ(each.memory.units & made.memory.units, 0U) << step;
    }
    live.push_back(std::move(made));
  }
  for (auto& each : live) {
    each.ended->finish({});
  }
}

TEST_F(pinned_slots_test, threads_share_them) {
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed) {
    threads.emplace_back([this, seed] {
      std::mt19937 random{seed};
      std::vector<std::pair<flight, std::size_t>> live;
      for (int step = 0; step < 2000; ++step) {
        const auto nbytes = 1 + random() % (4 * k_unit);
        auto made = fly(nbytes);
        if (made.memory.memory != nullptr) {
          std::memset(made.memory.memory, static_cast<int>(seed + 1), nbytes);
          live.emplace_back(std::move(made), nbytes);
        }
        while (live.size() > random() % 8) {
          auto& [oldest, size] = live.front();
          const auto* const begin = oldest.memory.memory;
          EXPECT_TRUE(std::all_of(begin, begin + size, [seed](std::byte each) {
            return each == static_cast<std::byte>(seed + 1);
          }));
          oldest.ended->finish({});
          live.erase(live.begin());
        }
      }
      for (auto& each : live) {
        each.first.ended->finish({});
      }
    });
  }
  for (auto& each : threads) {
    each.join();
  }
}

}  // namespace
}  // namespace isthmus
