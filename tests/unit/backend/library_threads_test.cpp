// SPDX-License-Identifier: Apache-2.0
#include "backend/library_threads.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "support/eventually.hpp"

namespace isthmus {
namespace {

std::atomic<bool> may_end{false};

os::Deadline work_until_allowed() noexcept {
  while (!may_end.load()) {
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  return {};
}

// Idle work may wait for a device, and must not run on a thread that is reserved for other work.
TEST(library_threads, reserved_work_begins_while_idle_work_waits) {
  const auto has_run = std::make_shared<std::atomic<bool>>(false);
  auto work = ReservedWork::make([has_run] { *has_run = true; });
  ASSERT_TRUE(work);
  run_when_idle(work_until_allowed, os::Clock::now());
  std::this_thread::sleep_for(std::chrono::milliseconds{20});  // time to begin the idle work
  work->start();
  EXPECT_TRUE(support::eventually([&] { return has_run->load(); }));
  may_end = true;
}

}  // namespace
}  // namespace isthmus
