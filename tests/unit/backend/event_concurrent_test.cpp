// SPDX-License-Identifier: Apache-2.0
// Many threads wait for, add continuations to and complete the same events.

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "backend/event.hpp"

namespace isthmus {
namespace {

struct tally final : Continuation {
  explicit tally(std::atomic<int>& runs) : runs_{runs} {}
  void run(Event&) noexcept override {
    runs_.fetch_add(1);
    delete this;
  }
  std::atomic<int>& runs_;
};

TEST(event_concurrent, every_waiter_wakes_and_no_continuation_runs_twice) {
  constexpr int k_rounds = 500;
  constexpr int k_threads = 4;
  std::atomic<int> runs{0};
  std::atomic<int> first{0};
  for (int round = 0; round < k_rounds; ++round) {
    const auto made = make_ref<HostEvent>();
    std::vector<std::thread> threads;
    for (int index = 0; index < k_threads; ++index) {
      threads.emplace_back([&, index] {
        made->on_complete(*new tally{runs});
        if (index < 2) {
          first += made->finish({}) ? 1 : 0;
        } else {
          EXPECT_TRUE(made->wait(std::nullopt));
        }
      });
    }
    for (auto& each : threads) {
      each.join();
    }
  }
  EXPECT_EQ(runs, k_rounds * k_threads);
  EXPECT_EQ(first, k_rounds);
}

}  // namespace
}  // namespace isthmus
