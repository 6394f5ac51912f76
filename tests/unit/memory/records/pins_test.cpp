// SPDX-License-Identifier: Apache-2.0
// Pinned ranges: shared, extended and unpinned, and nothing left pinned where the driver fails.

#include "memory/records/pins.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <thread>

#include "backend/platform.hpp"
#include "backend/queue.hpp"
#include "core/sizes.hpp"
#include "support/eventually.hpp"

namespace isthmus {
namespace {

constexpr std::size_t k_page = 4096;

// Records what is registered, and counts violations: what a driver would refuse.
class pinning_device final : public Device {
 public:
  using Device::Device;

  bool registers_host_memory() const noexcept override { return true; }
  Result<bool> register_host(const HostRange& what) override {
    const std::lock_guard hold{lock_};
    if (calls_before_failure_ == 0) {
      calls_before_failure_ = -1;
      return fail(ISTHMUS_ERROR_OUT_OF_MEMORY, "told to fail");
    }
    calls_before_failure_ -= calls_before_failure_ > 0 ? 1 : 0;
    const auto begin = page_of(what.start);
    const auto count = what.nbytes / k_page;
    if (std::any_of(ranges_.begin(), ranges_.end(), [&](const auto& each) {
          return each.first < begin + count && begin < each.first + each.second;
        })) {
      ++violations_;
    }
    ranges_[begin] = count;
    ++registrations_;
    return !belongs_to_others_;
  }
  void unregister_host(void* start) noexcept override {
    const std::lock_guard hold{lock_};
    violations_ += ranges_.erase(page_of(start)) == 1 ? 0 : 1;
  }

  void fail_after(int calls) { calls_before_failure_ = calls; }
  void give_to_others() { belongs_to_others_ = true; }
  [[nodiscard]] int registrations() const noexcept { return registrations_; }
  [[nodiscard]] int violations() const noexcept { return violations_; }
  // Maps the first page of each registered range to its number of pages.
  [[nodiscard]] std::map<std::size_t, std::size_t> ranges() {
    const std::lock_guard hold{lock_};
    return ranges_;
  }

 private:
  static std::size_t page_of(const void* start) noexcept { return address(start) / k_page; }

  std::mutex lock_;
  std::map<std::size_t, std::size_t> ranges_;
  int calls_before_failure_ = -1;
  int registrations_ = 0;
  int violations_ = 0;
  bool belongs_to_others_ = false;
};

class pinning_platform final : public Platform {
 public:
  pinning_platform() : Platform{{"fake", "Fake", "", "", ""}} {
    DeviceProperties told;
    told.filter = "fake:gpu:0";
    add(std::make_unique<pinning_device>(*this, told));
  }
  [[nodiscard]] pinning_device& only() const noexcept {
    return static_cast<pinning_device&>(*devices().front());
  }

 protected:
  Result<Ref<Context>> make_context(std::vector<Device*>, Platform*) override {
    return fail(ISTHMUS_ERROR_UNSUPPORTED, "none");
  }
};

using ranges = std::map<std::size_t, std::size_t>;

class pins : public ::testing::Test {
 protected:
  ~pins() override {
    EXPECT_TRUE(driver().ranges().empty()) << "left registered";
    EXPECT_EQ(driver().violations(), 0) << "a page twice, or one that was not";
    EXPECT_FALSE(table().any());
  }
  static PinTable& table() noexcept { return process_pins(); }
  [[nodiscard]] pinning_device& driver() const noexcept { return home_->only(); }
  static HostRange pages(std::size_t first, std::size_t count) {
    return {reinterpret_cast<std::byte*>(first * k_page), count * k_page, false};
  }
  [[nodiscard]] Result<PinnedRanges> try_add(std::size_t first, std::size_t count) const {
    return table().pin(driver(), pages(first, count), nullptr);
  }
  [[nodiscard]] PinnedRanges add(std::size_t first, std::size_t count) const {
    return *try_add(first, count);
  }
  static void remove(const PinnedRanges& what, bool wait = true) { table().unpin(what, wait); }
  [[nodiscard]] PinnedRanges hold(std::size_t page) const {
    return table().hold(*home_, pages(page, 1).start + 5, 10);
  }

  Ref<pinning_platform> home_ = make_ref<pinning_platform>();
};

TEST_F(pins, share_what_is_there_and_add_what_is_not) {
  const auto middle = add(10, 5);
  const auto whole = add(5, 20);
  EXPECT_EQ(driver().ranges(), (ranges{{5, 5}, {10, 5}, {15, 10}}));
  const auto inner = add(11, 1);
  EXPECT_EQ(driver().registrations(), 3);
  remove(middle);
  EXPECT_EQ(driver().ranges().size(), 3U);
  remove(whole);
  EXPECT_EQ(driver().ranges(), (ranges{{10, 5}}));
  remove(inner);
}

TEST_F(pins, of_neighbours_are_their_own) {
  const auto left = add(10, 5);
  const auto right = add(15, 5);
  remove(left);
  EXPECT_EQ(driver().ranges(), (ranges{{15, 5}}));
  remove(right);
}

TEST_F(pins, leave_nothing_where_the_driver_fails_at_any_call) {
  const auto one = add(10, 1);
  const auto other = add(20, 1);
  for (int calls = 0; calls < 3; ++calls) {
    driver().fail_after(calls);
    auto failed = try_add(5, 25);
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.failure().code(), ISTHMUS_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(driver().ranges(), (ranges{{10, 1}, {20, 1}})) << calls;
  }
  remove(one);
  remove(other);
}

TEST_F(pins, leave_externally_registered_ranges_registered) {
  driver().give_to_others();
  const auto theirs = add(10, 5);
  remove(theirs);
  EXPECT_EQ(driver().ranges().size(), 1U);
  driver().unregister_host(pages(10, 5).start);
}

TEST_F(pins, stay_while_a_copy_is_pending) {
  const auto mine = add(10, 5);
  auto copy = hold(12);
  EXPECT_EQ(copy.size(), 1U);
  EXPECT_TRUE(hold(15).empty());
  EXPECT_FALSE(table().wait(mine, os::deadline_after(0)));
  remove(mine, false);
  EXPECT_EQ(driver().ranges().size(), 1U);
  const auto again = add(11, 1);
  table().release_now(copy);
  EXPECT_EQ(driver().registrations(), 1);
  copy = hold(11);
  remove(again, false);
  table().release_now(copy);
  EXPECT_TRUE(support::eventually([] { return !table().any(); }));
}

TEST_F(pins, that_are_waited_for_end_before_the_wait_does) {
  const auto mine = add(10, 5);
  const auto copy = hold(12);
  std::thread other{[&] { table().release_now(copy); }};
  remove(mine);
  EXPECT_TRUE(driver().ranges().empty());
  other.join();
}

TEST_F(pins, of_many_threads_at_once) {
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&, seed] {
      std::mt19937 random{seed};
      for (int round = 0; round < 2000; ++round) {
        const std::size_t first = 1 + random() % 30;
        const auto mine = add(first, 1 + random() % 8);
        const auto copy = hold(first);
        EXPECT_EQ(copy.size(), 1U);
        const auto others = hold(1 + random() % 30);
        if (round % 2 == 0) {
          table().release_now(copy);
          table().release_now(others);
          remove(mine, round % 4 == 0);
        } else {
          remove(mine, false);
          table().release_now(copy);
          table().release_now(others);
        }
      }
    });
  }
  for (auto& each : threads) {
    each.join();
  }
  EXPECT_TRUE(support::eventually([] { return !table().any(); }));
}

}  // namespace
}  // namespace isthmus
