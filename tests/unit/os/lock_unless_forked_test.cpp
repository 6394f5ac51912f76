// SPDX-License-Identifier: Apache-2.0
#include "os/lock_unless_forked.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "core/lock_guard.hpp"
#include "core/mutex.hpp"

namespace isthmus::os {
namespace {

TEST(lock_unless_forked, holds_the_lock_while_it_exists) {
  Mutex lock;
  std::atomic<bool> has_entered{false};
  std::jthread other;
  {
    const LockUnlessForked hold{lock};
    other = std::jthread{[&] {
      const LockUnlessForked wait{lock};
      has_entered = true;
    }};
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
    EXPECT_FALSE(has_entered);
  }
  other.join();
  EXPECT_TRUE(has_entered);
}

TEST(lock_unless_forked, does_nothing_in_a_child) {
  watch_forks();
  Mutex lock;
  const LockGuard held_by_the_parent{lock};
  const auto child = fork();
  if (child == 0) {
    alarm(10);  // ends a child that waits
    [&]() ISTHMUS_NO_THREAD_SAFETY_ANALYSIS { const LockUnlessForked hold{lock}; }();
    _exit(0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace isthmus::os
