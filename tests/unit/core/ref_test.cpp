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

TEST(ref, a_part_that_joins_its_whole_later_keeps_it_alive) {
  int ends = 0;
  int part_ends = 0;
  noted joined{part_ends};
  Ref<noted> held;
  {
    const auto all = make_ref<noted>(ends);
    joined.become_child_of(*all);
    held = Ref<noted>{&joined};
    EXPECT_EQ(all->references(), 2U);
  }
  EXPECT_EQ(ends, 0);
  held = nullptr;
  EXPECT_EQ(ends, 1);
  EXPECT_EQ(part_ends, 0);
}

TEST(ref, a_part_of_a_part_counts_for_the_whole) {
  int ends = 0;
  auto all = make_ref<whole>(ends);
  RefCounted& member = *all->member_;
  part inner{member};
  Ref<part> held{&inner};
  EXPECT_EQ(all->references(), 2U);
  EXPECT_EQ(member.references(), 2U);
  all = nullptr;
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
