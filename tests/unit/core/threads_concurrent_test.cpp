// SPDX-License-Identifier: Apache-2.0
#include "core/threads.hpp"

#include <gtest/gtest.h>

namespace isthmus {
namespace {

bool is_blocked(int signal) {
  sigset_t blocked;
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  return sigismember(&blocked, signal) == 1;
}

TEST(threads, of_the_library_take_no_signals_but_their_own_faults) {
  bool blocked = false;
  bool faults = false;
  bool ours = false;
  bool as_before = false;
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &one, nullptr);
  start_thread([&] {
    blocked = is_blocked(SIGTERM) && is_blocked(SIGINT);
    faults = !is_blocked(SIGSEGV) && !is_blocked(SIGFPE);
    ours = on_library_thread();
    const SignalsOfStarter meanwhile;
    as_before = !is_blocked(SIGTERM) && is_blocked(SIGUSR2);
  }).join();
  pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
  EXPECT_TRUE(blocked);
  EXPECT_TRUE(faults) << "a handler of the program's would not run";
  EXPECT_TRUE(ours);
  EXPECT_TRUE(as_before);
  EXPECT_FALSE(is_blocked(SIGTERM));
  EXPECT_FALSE(on_library_thread());
}

}  // namespace
}  // namespace isthmus
