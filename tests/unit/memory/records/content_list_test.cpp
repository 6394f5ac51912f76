// SPDX-License-Identifier: Apache-2.0
// The list of copies that will fill bytes of an allocation.

#include "memory/records/content_list.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "support/no_memory.hpp"

namespace isthmus {
namespace {

constexpr std::size_t k_bytes = 96;
enum class outcome : std::uint8_t { pending, succeeded, failed };

std::size_t copies_of(ContentList& list, const ByteRange& range) {
  std::vector<Ref<Event>> after;
  list.collect(range, after);
  return after.size();
}

TEST(content_list, awaits_without_memory) {
  ContentList list;
  const auto first = make_ref<HostEvent>();
  const auto second = make_ref<HostEvent>();
  second->finish(fail(ISTHMUS_ERROR_DRIVER, "failed"));
  RangeSet begin{{0, 8}};
  RangeSet end{{8, 16}};
  ContentList::Seat one;
  ContentList::Seat other;
  {
    const support::without_memory now;
    list.record_fill(std::move(one), std::move(begin), first);
    list.record_fill(std::move(other), std::move(end), second);
  }
  EXPECT_EQ(copies_of(list, {0, 8}), 1U);
  EXPECT_EQ(copies_of(list, {8, 16}), 1U);
  EXPECT_EQ(copies_of(list, {0, 16}), 2U);
}

TEST(content_list, forgets_what_is_filled_in_another_way) {
  ContentList list;
  const auto copy = make_ref<HostEvent>();
  list.record_fill({}, {{0, 16}}, copy);
  list.forget({{0, 8}});
  EXPECT_EQ(copies_of(list, {0, 8}), 0U);
  EXPECT_EQ(copies_of(list, {8, 16}), 1U);
  copy->finish({});
  EXPECT_EQ(copies_of(list, {8, 16}), 0U);
  EXPECT_FALSE(list.any());
}

TEST(content_list, requests_the_copy_again_if_its_replacement_fails) {
  ContentList list;
  const auto copy = make_ref<HostEvent>();
  const auto written = make_ref<HostEvent>();
  const auto failed = make_ref<HostEvent>();
  list.record_fill({}, {{0, 16}}, copy);
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

// If the second of two writes that replace a copy's bytes fails, what the first wrote remains.
TEST(content_list, forgets_the_copy_once_one_of_those_that_were_to_replace_it_succeeds) {
  for (const bool is_first : {false, true}) {
    for (const bool ends_first : {false, true}) {
      SCOPED_TRACE(testing::Message() << "first " << is_first << ", ends first " << ends_first);
      ContentList list;
      const auto copy = make_ref<HostEvent>();
      const auto first = make_ref<HostEvent>();
      const auto second = make_ref<HostEvent>();
      list.record_fill({}, {{0, 16}}, copy);
      copy->finish(fail(ISTHMUS_ERROR_DRIVER, "failed"));
      list.replace({{0, 16}}, first);
      list.replace({{0, 8}}, second);
      const auto end = [&](const Ref<HostEvent>& which) {
        const bool succeeds = is_first == (which.get() == first.get());
        which->finish(succeeds ? Error{} : fail(ISTHMUS_ERROR_DRIVER, "failed"));
      };
      end(ends_first ? first : second);
      end(ends_first ? second : first);
      EXPECT_EQ(copies_of(list, {0, 8}), 0U);
      EXPECT_EQ(copies_of(list, {8, 16}), is_first ? 0U : 1U);
    }
  }
}

TEST(content_list, requests_the_copy_again_if_all_of_its_replacements_fail) {
  ContentList list;
  const auto copy = make_ref<HostEvent>();
  list.record_fill({}, {{0, 16}}, copy);
  copy->finish(fail(ISTHMUS_ERROR_DRIVER, "failed"));
  std::vector<Ref<HostEvent>> writes;
  for (int each = 0; each < 3; ++each) {
    writes.push_back(make_ref<HostEvent>());
    list.replace({{0, 16}}, writes.back());
    list.replace({{0, 16}}, writes.back());
  }
  for (const auto& each : writes) {
    EXPECT_EQ(copies_of(list, {0, 16}), 0U) << "not known yet";
    each->finish(fail(ISTHMUS_ERROR_DRIVER, "failed"));
  }
  EXPECT_EQ(copies_of(list, {0, 16}), 1U);
}

// The model: for each byte the entry that determines its content, if any.
class byte_model {
 public:
  void await(const RangeSet& ranges, std::size_t copy) {
    for_each(ranges, [&](cell& each) { each = {copy, {}}; });
  }
  void forget(const RangeSet& ranges) {
    for_each(ranges, [](cell& each) { each = {}; });
  }
  void replace(const RangeSet& ranges, std::size_t written) {
    for_each(ranges, [&](cell& each) {
      if (each.copy) {
        each.writes.push_back(written);
      }
    });
  }
  // The copies that a reader depends on. `state` returns the outcome of each event.
  [[nodiscard]] std::set<std::size_t> collect(const ByteRange& range, auto&& state) const {
    std::set<std::size_t> found;
    for (auto at = range.begin; at < range.end; ++at) {
      const auto& [copy, writes] = cells_.at(at);
      if (copy && state(*copy) != outcome::succeeded &&
          std::ranges::all_of(writes,
                              [&](std::size_t each) { return state(each) == outcome::failed; })) {
        found.insert(*copy);
      }
    }
    return found;
  }

 private:
  struct cell {
    std::optional<std::size_t> copy;
    std::vector<std::size_t> writes;
  };
  void for_each(const RangeSet& ranges, auto&& change) {
    for (const auto& each : ranges) {
      for (auto at = each.begin; at < each.end; ++at) {
        change(cells_.at(at));
      }
    }
  }
  std::array<cell, k_bytes> cells_;
};

RangeSet some_ranges(std::mt19937& random) {
  RangeSet made;
  for (auto count = 1 + random() % 3; count > 0; --count) {
    const auto begin = random() % k_bytes;
    made.add(ByteRange{begin, std::min<std::size_t>(k_bytes, begin + 1 + random() % 24)});
  }
  return made;
}

// Events complete in the order in which they were created, like those of one queue.
TEST(content_list, is_as_a_model_of_each_byte) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random{seed};
    ContentList list;
    byte_model model;
    std::vector<Ref<HostEvent>> events;
    std::vector<outcome> ends;
    const auto state = [&](std::size_t which) { return ends[which]; };
    const auto make = [&] {
      events.push_back(make_ref<HostEvent>());
      ends.push_back(outcome::pending);
      return events.size() - 1;
    };
    std::size_t ended = 0;
    for (int step = 0; step < 400; ++step) {
      const auto ranges = some_ranges(random);
      switch (random() % 5) {
        case 0:
          list.record_fill({}, ranges, events[make()]);
          model.await(ranges, events.size() - 1);
          break;
        case 1:
          list.replace(ranges, events[make()]);
          model.replace(ranges, events.size() - 1);
          break;
        case 2:
          list.forget(ranges);
          model.forget(ranges);
          break;
        default:
          if (ended < events.size()) {
            const bool fails = random() % 2 == 0;
            events[ended]->finish(fails ? fail(ISTHMUS_ERROR_DRIVER, "failed") : Error{});
            ends[ended++] = fails ? outcome::failed : outcome::succeeded;
          }
      }
      const auto range = *some_ranges(random).begin();
      std::vector<Ref<Event>> after;
      list.collect(range, after);
      std::set<std::size_t> found;
      for (const auto& each : after) {
        found.insert(static_cast<std::size_t>(
            std::ranges::find(events, each.get(),
                              [](auto& one) { return static_cast<Event*>(one.get()); }) -
            events.begin()));
      }
      ASSERT_EQ(found, model.collect(range, state)) << "step " << step;
    }
  }
}

// Any call removes entries of copies that have succeeded, however many there are.
TEST(content_list, is_empty_after_some_queries_once_all_copies_succeeded) {
  constexpr std::size_t k_copies = 3000;
  ContentList list;
  std::vector<Ref<HostEvent>> copies;
  for (std::size_t each = 0; each < k_copies; ++each) {
    copies.push_back(make_ref<HostEvent>());
    list.record_fill({}, {{2 * each, 2 * each + 1}}, copies.back());
  }
  EXPECT_EQ(copies_of(list, {0, 2 * k_copies}), k_copies);
  for (const auto& each : copies) {
    each->finish({});
  }
  for (std::size_t looks = 0; looks < 16; ++looks) {
    EXPECT_EQ(copies_of(list, {0, 1}), 0U);
  }
  EXPECT_FALSE(list.any());
}

// A caller that waited for the memory may use it from then on without consulting the list.
TEST(content_list, is_empty_after_one_query_of_all_bytes_once_all_copies_succeeded) {
  constexpr std::size_t k_copies = 3000;
  for (const bool writes : {false, true}) {
    SCOPED_TRACE(writes ? "written over" : "read");
    ContentList list;
    const auto copy = make_ref<HostEvent>();
    for (std::size_t each = 0; each < k_copies; ++each) {
      list.record_fill({}, {{2 * each, 2 * each + 1}}, copy);
    }
    copy->finish({});
    const ByteRange all{0, 2 * k_copies};
    if (writes) {
      list.replace({all}, make_ref<HostEvent>());
    } else {
      EXPECT_EQ(copies_of(list, all), 0U);
    }
    EXPECT_FALSE(list.any());
  }
}

}  // namespace
}  // namespace isthmus
