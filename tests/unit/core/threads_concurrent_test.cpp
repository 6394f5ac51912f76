#include "core/threads.hpp"

#include <gtest/gtest.h>

namespace isthmus {
namespace {

bool is_blocked(int signal) {
  sigset_t blocked;
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  return sigismember(&blocked, signal) == 1;
}

TEST(threads, of_the_library_take_no_signals) {
  bool blocked = false;
  bool ours = false;
  start_thread([&] {
    blocked = is_blocked(SIGTERM) && is_blocked(SIGINT);
    ours = on_library_thread();
  }).join();
  EXPECT_TRUE(blocked);
  EXPECT_TRUE(ours);
  EXPECT_FALSE(is_blocked(SIGTERM));
  EXPECT_FALSE(on_library_thread());
}

}  // namespace
}  // namespace isthmus
