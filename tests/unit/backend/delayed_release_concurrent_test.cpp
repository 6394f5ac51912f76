// SPDX-License-Identifier: Apache-2.0
#include "backend/workarounds/delayed_release.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "support/eventually.hpp"

namespace isthmus {
namespace {

using namespace std::chrono_literals;

// Passes out an object and observes whether it was released.
class lender {
 public:
  [[nodiscard]] std::shared_ptr<void> lend() {
    auto made = std::make_shared<int>(0);
    lent_ = made;
    return made;
  }
  [[nodiscard]] bool has_it_back() const { return lent_.expired(); }
  [[nodiscard]] bool gets_it_back() const {
    return support::eventually([this] {
      release_expired();
      return has_it_back();
    });
  }

 private:
  std::weak_ptr<void> lent_;
};

// The list of running events of a queue with one operation.
std::vector<Ref<Event>> one(Ref<Event> last) { return {std::move(last)}; }

TEST(delayed_release_concurrent, releases_some_time_after_all_events_have_completed) {
  lender from;
  const auto last = make_ref<HostEvent>();
  release_later(1, one(last), from.lend());
  std::this_thread::sleep_for(1200ms);
  release_expired();
  release_expired();
  EXPECT_FALSE(from.has_it_back()) << "something is running";
  last->finish({});
  const auto ended = os::Clock::now();
  EXPECT_TRUE(from.gets_it_back());
  EXPECT_GE(os::Clock::now() - ended, 1s);
}

TEST(delayed_release_concurrent, is_replaced_by_a_later_release_with_the_same_key) {
  lender first;
  lender second;
  const auto last = make_ref<HostEvent>();
  release_later(2, {}, first.lend());
  release_later(2, one(last), second.lend());
  EXPECT_TRUE(first.has_it_back());
  EXPECT_FALSE(second.has_it_back());
  last->finish({});
  EXPECT_TRUE(second.gets_it_back());
}

TEST(delayed_release_concurrent, waits_for_events_of_the_release_that_it_replaced) {
  lender first;
  lender second;
  const auto last = make_ref<HostEvent>();
  release_later(3, one(last), first.lend());
  release_later(3, {}, second.lend());
  std::this_thread::sleep_for(1200ms);
  release_expired();
  EXPECT_FALSE(second.has_it_back());
  last->finish({});
  EXPECT_TRUE(second.gets_it_back());
}

TEST(delayed_release_concurrent, what_runs_for_long_keeps_nothing_else) {
  lender of_long;
  lender of_short;
  const auto last = make_ref<HostEvent>();
  release_later(4, one(last), of_long.lend());
  release_later(5, {}, of_short.lend());
  EXPECT_TRUE(of_short.gets_it_back());
  EXPECT_FALSE(of_long.has_it_back());
  last->finish({});
  EXPECT_TRUE(of_long.gets_it_back());
}

// The object is released by the completion of an event, as a queue may be.
TEST(delayed_release_concurrent, may_start_during_another_release) {
  class begins final : public Continuation {
   public:
    explicit begins(std::shared_ptr<void> held) : held_{std::move(held)} {}
    void run(Event&) noexcept override {
      release_later(7, {}, std::move(held_));
      delete this;
    }

   private:
    std::shared_ptr<void> held_;
  };
  class ends_when_asked final : public Event {
    void refresh() noexcept override { complete({}); }
  };
  lender first;
  lender second;
  const auto last = make_ref<ends_when_asked>();
  last->on_complete_lazily(*new begins{second.lend()});
  release_later(6, one(last), first.lend());
  EXPECT_TRUE(first.gets_it_back());
  EXPECT_TRUE(second.gets_it_back());
}

TEST(delayed_release_concurrent, may_begin_again_when_it_ends) {
  class twice {
   public:
    explicit twice(std::shared_ptr<void> held) : held_{std::move(held)} {}
    ~twice() { release_later(8, {}, std::move(held_)); }
    twice(const twice&) = delete;
    twice& operator=(const twice&) = delete;

   private:
    std::shared_ptr<void> held_;
  };
  lender second;
  release_later(8, {}, std::make_shared<twice>(second.lend()));
  const auto begin = os::Clock::now();
  EXPECT_TRUE(second.gets_it_back());
  EXPECT_GE(os::Clock::now() - begin, 2s);
}

// A program that never calls `release_expired` keeps only the most recent objects.
TEST(delayed_release_concurrent, is_ended_by_later_releases) {
  constexpr std::size_t k_count = 100;
  std::vector<lender> lenders(k_count);
  for (std::size_t i = 0; i < k_count; ++i) {
    const auto last = make_ref<HostEvent>();
    release_later(1000 + i, one(last), lenders[i].lend());
    last->finish({});
  }
  std::uintptr_t next = 2000;
  EXPECT_TRUE(support::eventually([&] {
    release_later(next, one(make_ref<HostEvent>()), {});
    next = next < 2100 ? next + 1 : 2000;
    return std::all_of(lenders.begin(), lenders.end(),
                       [](const lender& each) { return each.has_it_back(); });
  }));
}

TEST(delayed_release_concurrent, may_be_polled_by_many_threads) {
  std::vector<lender> lenders(100);
  std::vector<Ref<HostEvent>> last(lenders.size());
  for (std::size_t i = 0; i < lenders.size(); ++i) {
    last[i] = make_ref<HostEvent>();
    release_later(100 + i, one(last[i]), lenders[i].lend());
  }
  std::vector<std::thread> lookers;
  for (int i = 0; i < 4; ++i) {
    lookers.emplace_back([&] {
      EXPECT_TRUE(support::eventually([&] {
        release_expired();
        return std::all_of(lenders.begin(), lenders.end(),
                           [](const lender& each) { return each.has_it_back(); });
      }));
    });
  }
  for (const auto& each : last) {
    std::this_thread::sleep_for(1ms);
    each->finish({});
  }
  for (auto& each : lookers) {
    each.join();
  }
}

}  // namespace
}  // namespace isthmus
