// SPDX-License-Identifier: Apache-2.0
#include "core/owned_by_thread.hpp"

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "support/thread_end.hpp"

namespace isthmus::owned_by_thread_test {
namespace {

std::string told;

template <char name>
struct letter {
  letter() noexcept { told += name; }
  letter(const letter&) = delete;
  letter& operator=(const letter&) = delete;
  ~letter();
};

thread_local constinit OwnedByThread<letter<'a'>> a;
thread_local constinit OwnedByThread<letter<'b'>> b;
thread_local constinit OwnedByThread<letter<'c'>> c;

template <char name>
letter<name>::~letter() {
  told += static_cast<char>(name + ('A' - 'a'));
  if (name == 'b') {
    EXPECT_TRUE(b.is_destroyed());
    EXPECT_EQ(b.get(), nullptr);
    EXPECT_NE(a.get(), nullptr) << "the newest goes first";
    EXPECT_NE(c.get(), nullptr) << "made only now";
  }
}

TEST(owned_by_thread, is_made_once_and_ends_with_its_thread) {
  told.clear();
  std::thread([] {
    EXPECT_EQ(a.find(), nullptr);
    const auto* first = a.get();
    EXPECT_NE(first, nullptr);
    EXPECT_EQ(a.get(), first);
    EXPECT_EQ(a.find(), first);
    EXPECT_NE(b.get(), nullptr);
    EXPECT_FALSE(a.is_destroyed());
  }).join();
  EXPECT_EQ(told, "abBcCA");
}

TEST(owned_by_thread, is_another_in_each_thread) {
  const void* const mine = a.get();
  const void* other = mine;
  std::thread([&] { other = a.get(); }).join();
  EXPECT_NE(other, mine);
  EXPECT_EQ(a.get(), mine);
}

TEST(owned_by_thread, exists_in_destructors_and_is_not_created_after_them) {
  told.clear();
  struct last_wish {
    bool is_needed = false;
    ~last_wish() {
      if (is_needed) {
        told += a.find() != nullptr && c.get() != nullptr ? '+' : '-';
      }
    }
  };
  std::thread([] {
    thread_local last_wish mine;
    mine.is_needed = true;
    support::run_at_thread_end([] { told += a.get() == nullptr && a.is_destroyed() ? '+' : '-'; });
    EXPECT_NE(a.get(), nullptr);
  }).join();
  EXPECT_EQ(told, "ac+CA+");
}

}  // namespace
}  // namespace isthmus::owned_by_thread_test
