// The copies that are to fill bytes of an allocation.

#include "memory/content_list.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "support/no_memory.hpp"

namespace isthmus {
namespace {

std::size_t copies_of(content_list& list, const byte_range& range) {
  std::vector<ref<event>> after;
  list.collect(range, after);
  return after.size();
}

TEST(content_list, awaits_without_memory_what_two_threads_reserved) {
  content_list list;
  const auto first = make_ref<host_event>();
  const auto second = make_ref<host_event>();
  second->finish(fail(ISTHMUS_ERROR_DRIVER, "failed"));
  range_set begin{{0, 8}};
  range_set end{{8, 16}};
  list.reserve();
  list.reserve();
  {
    const support::without_memory now;
    list.await(std::move(begin), first);
    list.await(std::move(end), second);
  }
  EXPECT_EQ(copies_of(list, {0, 8}), 1U);
  EXPECT_EQ(copies_of(list, {8, 16}), 1U);
  EXPECT_EQ(copies_of(list, {0, 16}), 2U);
}

TEST(content_list, gives_up_what_was_reserved) {
  content_list list;
  list.reserve();
  list.give_up();
  EXPECT_FALSE(list.any());
}

TEST(content_list, forgets_what_is_filled_in_another_way) {
  content_list list;
  const auto copy = make_ref<host_event>();
  list.reserve();
  list.await({{0, 16}}, copy);
  list.forget({{0, 8}});
  EXPECT_EQ(copies_of(list, {0, 8}), 0U);
  EXPECT_EQ(copies_of(list, {8, 16}), 1U);
  copy->finish({});
  EXPECT_EQ(copies_of(list, {8, 16}), 0U);
  EXPECT_FALSE(list.any());
}

TEST(content_list, asks_for_the_copy_again_where_what_was_to_replace_it_fails) {
  content_list list;
  const auto copy = make_ref<host_event>();
  const auto written = make_ref<host_event>();
  const auto failed = make_ref<host_event>();
  list.reserve();
  list.await({{0, 16}}, copy);
  list.replace({{0, 8}}, written);
  list.replace({{8, 12}}, failed);
  EXPECT_EQ(copies_of(list, {0, 12}), 0U) << "not known yet";
  EXPECT_EQ(copies_of(list, {12, 16}), 1U);
  copy->finish(fail(ISTHMUS_ERROR_DRIVER, "failed"));
  written->finish({});
  failed->finish(fail(ISTHMUS_ERROR_DRIVER, "failed"));
  EXPECT_EQ(copies_of(list, {0, 8}), 0U);
  EXPECT_EQ(copies_of(list, {8, 12}), 1U);
  EXPECT_EQ(copies_of(list, {12, 16}), 1U);
  list.forget({{0, 16}});
  EXPECT_FALSE(list.any());
}

// The second of two that were to replace a copy's bytes leaves what the first wrote.
TEST(content_list, forgets_the_copy_once_one_of_those_that_were_to_replace_it_succeeds) {
  for (const bool is_first : {false, true}) {
    for (const bool ends_first : {false, true}) {
      SCOPED_TRACE(testing::Message() << "first " << is_first << ", ends first " << ends_first);
      content_list list;
      const auto copy = make_ref<host_event>();
      const auto first = make_ref<host_event>();
      const auto second = make_ref<host_event>();
      list.reserve();
      list.await({{0, 16}}, copy);
      copy->finish(fail(ISTHMUS_ERROR_DRIVER, "failed"));
      list.replace({{0, 16}}, first);
      list.replace({{0, 8}}, second);
      const auto end = [&](const ref<host_event>& which) {
        const bool succeeds = is_first == (which.get() == first.get());
        which->finish(succeeds ? error{} : fail(ISTHMUS_ERROR_DRIVER, "failed"));
      };
      end(ends_first ? first : second);
      end(ends_first ? second : first);
      EXPECT_EQ(copies_of(list, {0, 8}), 0U);
      EXPECT_EQ(copies_of(list, {8, 16}), is_first ? 0U : 1U);
    }
  }
}

TEST(content_list, asks_for_the_copy_again_where_all_that_were_to_replace_it_fail) {
  content_list list;
  const auto copy = make_ref<host_event>();
  list.reserve();
  list.await({{0, 16}}, copy);
  copy->finish(fail(ISTHMUS_ERROR_DRIVER, "failed"));
  std::vector<ref<host_event>> writes;
  for (int each = 0; each < 3; ++each) {
    writes.push_back(make_ref<host_event>());
    list.replace({{0, 16}}, writes.back());
    list.replace({{0, 16}}, writes.back());
  }
  for (const auto& each : writes) {
    EXPECT_EQ(copies_of(list, {0, 16}), 0U) << "not known yet";
    each->finish(fail(ISTHMUS_ERROR_DRIVER, "failed"));
  }
  EXPECT_EQ(copies_of(list, {0, 16}), 1U);
}

}  // namespace
}  // namespace isthmus
