// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>

#include "core/ref.hpp"

namespace isthmus {
namespace {

struct noted : RefCounted {
  explicit noted(int& ends) : ends_{ends} {}
  ~noted() override { ++ends_; }
  int& ends_;
};

struct part : RefCounted {
  explicit part(RefCounted& whole) : RefCounted{&whole} {}
};

struct whole : RefCounted {
  explicit whole(int& ends) : ends_{ends}, member_{std::make_unique<part>(*this)} {}
  ~whole() override { ++ends_; }
  int& ends_;
  std::unique_ptr<part> member_;
};

TEST(ref, the_last_reference_ends_the_object) {
  int ends = 0;
  {
    auto first = make_ref<noted>(ends);
    EXPECT_TRUE(first->unique());
    Ref<RefCounted> second = first;
    EXPECT_FALSE(first->unique());
    first = nullptr;
    EXPECT_EQ(ends, 0);
  }
  EXPECT_EQ(ends, 1);
}

TEST(ref, a_part_keeps_its_whole_alive) {
  int ends = 0;
  Ref<part> held;
  {
    const auto all = make_ref<whole>(ends);
    held = Ref<part>{all->member_.get()};
  }
  EXPECT_EQ(ends, 0);
  held = nullptr;
  EXPECT_EQ(ends, 1);
}

TEST(ref, can_be_acquired_only_while_it_is_referenced) {
  int ends = 0;
  const auto only = make_ref<noted>(ends);
  EXPECT_TRUE(only->try_retain());
  only->release();
  EXPECT_EQ(ends, 0);
}

TEST(ref, immortal_objects_are_not_counted) {
  int ends = 0;
  auto all = make_ref<whole>(ends);
  const std::unique_ptr<whole> ended_below{all.get()};
  all->make_immortal();
  {
    const Ref<part> held{all->member_.get()};
    EXPECT_EQ(all->references(), UINT32_MAX);
    EXPECT_FALSE(held->unique());
    EXPECT_TRUE(held->try_retain());  // changes no count, so that it cannot overflow
    all = nullptr;
  }
  EXPECT_EQ(ends, 0);
}

}  // namespace
}  // namespace isthmus
