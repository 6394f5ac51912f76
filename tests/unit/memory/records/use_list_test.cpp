// SPDX-License-Identifier: Apache-2.0
// The list, compared with a plain model that keeps every pending operation.

#include "memory/records/use_list.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bitset>
#include <random>

namespace isthmus {
namespace {

// Only the address is used.
const Device* device_number(std::uintptr_t number) {
  return reinterpret_cast<const Device*>(64 * (number + 1));
}
Use ordered_write(std::uint64_t on, ByteRange range) {
  return {on, range, true, false, true, device_number(0)};
}

struct modelled {
  Use what;
  Ref<HostEvent> ended;
};

// Whether waiting for `waited` implies waiting for `each`: `each` is in it, or precedes an event of
// its own queue in it.
bool implied(const std::vector<modelled>& all, std::size_t each,
             const std::vector<Ref<Event>>& waited) {
  for (std::size_t later = each; later < all.size(); ++later) {
    const bool same =
        later == each || (all[each].what.queue_serial != 0 &&
                          all[later].what.queue_serial == all[each].what.queue_serial);
    const bool in = std::any_of(waited.begin(), waited.end(), [&](const Ref<Event>& one) {
      return one.get() == all[later].ended.get();
    });
    if (same && in) {
      return true;
    }
  }
  return false;
}

bool conflicts(const Use& a, const Use& b) {
  return (a.queue_serial == 0 || a.queue_serial != b.queue_serial) && (a.writes || b.writes) &&
         a.range.overlaps(b.range);
}

TEST(use_list, waits_for_every_conflict_of_a_random_history) {
  std::mt19937 random{20261121};
  for (int round = 0; round < 200; ++round) {
    UseList uses;
    std::vector<modelled> all;
    for (int step = 0; step < 120; ++step) {
      const std::size_t begin = random() % 64;
      const Use next{random() % 4, {begin, begin + 1 + random() % 32}, random() % 2 == 0};
      std::vector<Ref<Event>> waited;
      uses.collect(next, waited);
      for (std::size_t each = 0; each < all.size(); ++each) {
        if (!all[each].ended->settled() && conflicts(next, all[each].what)) {
          ASSERT_TRUE(implied(all, each, waited)) << "round " << round << " step " << step;
        }
      }
      all.push_back({next, make_ref<HostEvent>()});
      uses.add(next, all.back().ended, uses.begin());
      // Queues are in order: when an operation ends, those before it on its queue have ended.
      const auto& done = all[random() % all.size()];
      for (const auto& earlier : all) {
        if (earlier.what.queue_serial == done.what.queue_serial && random() % 4 == 0) {
          earlier.ended->finish({});
        } else if (earlier.what.queue_serial == done.what.queue_serial) {
          break;
        }
      }
    }
  }
}

// The operations that each operation comes after: the earlier ones of its queue, the ones on its
// device that it was ordered after, and all that these come after. An operation of another device
// that it waits for may end after it, if its own device is lost.
class ordered_history {
 public:
  static constexpr std::size_t k_steps = 160;
  struct operation {
    Use what;
    Ref<HostEvent> ended;
    std::bitset<k_steps> after;
  };

  [[nodiscard]] const std::vector<operation>& all() const { return all_; }
  [[nodiscard]] bool has_ended(std::size_t which) const { return all_[which].ended->settled(); }
  void add(const Use& what, Ref<HostEvent> ended) {
    operation made{what, std::move(ended), {}};
    for (std::size_t each = 0; each < all_.size(); ++each) {
      const auto& before = all_[each].what;
      if ((what.queue_serial != 0 && before.queue_serial == what.queue_serial) ||
          (what.follows_conflicts && what.device == before.device && conflicts(what, before))) {
        made.after |= all_[each].after;
        made.after.set(each);
      }
    }
    all_.push_back(std::move(made));
  }
  // Ends everything that it comes after first.
  void end(std::size_t which) {
    for (std::size_t each = 0; each < which; ++each) {
      if (all_[which].after[each]) {
        all_[each].ended->finish({});
      }
    }
    all_[which].ended->finish({});
  }
  // What precedes an operation on the queue `on` that waits for `waited`.
  [[nodiscard]] std::bitset<k_steps> before(std::uint64_t on,
                                            const std::vector<Ref<Event>>& waited) const {
    std::bitset<k_steps> found;
    for (std::size_t each = 0; each < all_.size(); ++each) {
      const auto is_it = [&](const Ref<Event>& one) { return one.get() == all_[each].ended.get(); };
      if ((on != 0 && all_[each].what.queue_serial == on) || std::ranges::any_of(waited, is_it)) {
        found |= all_[each].after;
        found.set(each);
      }
    }
    return found;
  }

 private:
  std::vector<operation> all_;
};

// A write that was ordered after everything that it conflicts with stands for what it covers, of
// any queue. A recorded use, or one that was ordered after nothing, stands only for uses of its own
// queue.
TEST(use_list, waits_for_every_conflict_of_a_random_history_in_order) {
  std::mt19937 random{20261128};
  std::size_t found = 0;
  std::size_t waits = 0;
  for (int round = 0; round < 60; ++round) {
    UseList uses;
    ordered_history history;
    const auto most_queues = 1 + random() % 60;
    for (std::size_t step = 0; step < ordered_history::k_steps; ++step) {
      const std::size_t begin = random() % 64;
      const bool is_ordered = random() % 4 != 0;
      const auto on = random() % most_queues;
      const Use next{on,         {begin, begin + 1 + random() % 48},       random() % 2 == 0, false,
                     is_ordered, on == 0 ? nullptr : device_number(on % 2)};
      const auto began_at = uses.begin();
      std::vector<Ref<Event>> waited;
      uses.collect(next, waited);
      const auto before = history.before(next.queue_serial, waited);
      for (std::size_t each = 0; each < step; ++each) {
        if (!history.has_ended(each) && conflicts(next, history.all()[each].what)) {
          ASSERT_TRUE(before[each]) << "round " << round << " step " << step;
          ++found;
        }
      }
      waits += waited.size();
      auto ended = make_ref<HostEvent>();
      uses.add(next, ended, began_at);
      history.add(next, std::move(ended));
      if (random() % 3 == 0) {
        history.end(random() % (step + 1));
      }
    }
  }
  EXPECT_LT(waits, found) << "or nothing was tested";
}

// Each write waits only for the one before it, and a reader only for the last.
TEST(use_list, a_write_that_was_ordered_stands_for_all_that_it_covers) {
  UseList uses;
  std::vector<Ref<HostEvent>> all;
  for (std::uint64_t on = 1; on <= 2000; ++on) {
    const auto next = ordered_write(on, {0, 8});
    const auto began_at = uses.begin();
    std::vector<Ref<Event>> waited;
    uses.collect(next, waited);
    ASSERT_EQ(waited.size(), on == 1 ? 0U : 1U);
    all.push_back(make_ref<HostEvent>());
    uses.add(next, all.back(), began_at);
  }
  EXPECT_EQ(uses.pending({0, 8}).size(), 1U);
  EXPECT_EQ(uses.only_queue(), 2000U);
  std::vector<Ref<Event>> waited;
  uses.collect({1, {3, 4}, false}, waited);
  ASSERT_EQ(waited.size(), 1U);
  EXPECT_EQ(waited.front().get(), all.back().get());
  for (const auto& each : all) {
    each->finish({});
  }
  EXPECT_TRUE(uses.is_known_idle());
}

// A use that was begun before the write, and added after it, is not in the write's wait list.
TEST(use_list, a_write_does_not_stand_for_what_it_did_not_see) {
  UseList uses;
  const auto other = make_ref<HostEvent>();
  const auto write = make_ref<HostEvent>();
  const auto wide = make_ref<HostEvent>();
  const auto began_at = uses.begin();
  uses.add({1, {0, 8}, false}, other, uses.begin());
  uses.add(ordered_write(2, {0, 8}), write, began_at);
  EXPECT_EQ(uses.pending({0, 8}).size(), 2U);
  const auto next = uses.begin();
  uses.add(ordered_write(3, {0, 7}), wide, next);
  EXPECT_EQ(uses.pending({0, 8}).size(), 3U) << "bytes that it does not cover";
}

// The write's device may be lost. The write then ends although the other device's operation
// continues.
TEST(use_list, a_write_does_not_stand_for_another_devices_operation) {
  UseList uses;
  const auto other = make_ref<HostEvent>();
  const auto write = make_ref<HostEvent>();
  uses.add({1, {0, 8}, true, false, true, device_number(1)}, other, uses.begin());
  uses.add(ordered_write(2, {0, 8}), write, uses.begin());
  write->finish(fail(ISTHMUS_ERROR_DEVICE_LOST, "lost"));
  EXPECT_FALSE(uses.is_known_idle());
  ASSERT_EQ(uses.pending({0, 8}).size(), 1U);
  EXPECT_EQ(uses.pending({0, 8}).front().get(), other.get());
}

// Many queues, each with many ranges. None is joined with what lies between.
TEST(use_list, disjoint_ranges_of_many_queues_stay_apart) {
  UseList uses;
  constexpr std::size_t k_queues = 500;
  constexpr std::size_t k_ranges = 8;
  std::vector<Ref<HostEvent>> all;
  for (std::size_t at = 0; at < k_queues * k_ranges; ++at) {
    const auto next = ordered_write(1 + at % k_queues, {at, at + 1});
    const auto began_at = uses.begin();
    std::vector<Ref<Event>> waited;
    uses.collect(next, waited);
    ASSERT_TRUE(waited.empty()) << at;
    all.push_back(make_ref<HostEvent>());
    uses.add(next, all.back(), began_at);
  }
  EXPECT_EQ(uses.pending({0, all.size()}).size(), all.size());
  EXPECT_EQ(uses.pending({7, 8}).size(), 1U);
  for (const auto& each : all) {
    each->finish({});
  }
  EXPECT_TRUE(uses.is_known_idle());
}

TEST(use_list, ranges_of_one_queue_are_joined_before_they_are_many) {
  UseList uses;
  const auto ended = make_ref<HostEvent>();
  for (std::size_t at = 0; at < 10'000; ++at) {
    uses.add({1, {2 * at, 2 * at + 1}, true}, ended, uses.begin());
  }
  EXPECT_LE(uses.pending({0, 20'000}).size(), 33U);
  std::vector<Ref<Event>> waited;
  uses.collect({2, {0, 1}, false}, waited);
  EXPECT_EQ(waited.size(), 1U);
}

TEST(use_list, what_was_inherited_comes_before_all_but_its_own_queue) {
  const auto end = make_ref<HostEvent>();
  UseList uses;
  uses.inherit(7, 4, end);
  EXPECT_TRUE(uses.inherits());
  EXPECT_FALSE(uses.ever_used());
  EXPECT_FALSE(uses.is_known_idle());
  EXPECT_EQ(uses.only_queue(), 7U);
  EXPECT_EQ(uses.pending({0, 1}).size(), 1U);
  const auto waits = [&](const Use& wanted) {
    std::vector<Ref<Event>> found;
    uses.collect(wanted, found);
    return found;
  };
  EXPECT_TRUE(waits({7, {0, 4}, true}).empty()) << "in the queue's order";
  EXPECT_TRUE(waits({8, {0, 0}, true}).empty()) << "no bytes";
  const auto elsewhere = waits({8, {3, 4}, false});
  ASSERT_EQ(elsewhere.size(), 1U);
  EXPECT_EQ(waits({0, {3, 4}, false}).size(), 1U);
  const auto own = make_ref<HostEvent>();
  uses.add({8, {0, 4}, true}, own, uses.begin());
  EXPECT_TRUE(uses.ever_used());
  EXPECT_EQ(uses.only_queue(), std::nullopt);
  end->finish(fail(ISTHMUS_ERROR_DRIVER, "somebody's work failed"));
  EXPECT_TRUE(elsewhere.front()->wait({})) << "how it ended is nobody's concern";
  EXPECT_EQ(uses.only_queue(), 8U);
  EXPECT_TRUE(waits({8, {0, 4}, true}).empty());
  EXPECT_EQ(waits({7, {0, 4}, true}).size(), 1U);
  own->finish({});
  EXPECT_TRUE(uses.is_known_idle());
  EXPECT_TRUE(uses.pending({0, 4}).empty());
}

// Otherwise each queue that uses the memory later would wait for an event unknown to any driver.
TEST(use_list, a_write_of_all_on_its_queue_stands_for_what_was_inherited) {
  for (const auto& [write, stands] :
       {std::pair{Use{7, {0, 4}, true}, true}, std::pair{Use{7, {0, 3}, true}, false},
        std::pair{Use{7, {0, 4}, false}, false}, std::pair{Use{8, {0, 4}, true}, false}}) {
    UseList uses;
    const auto end = make_ref<HostEvent>();
    uses.inherit(7, 4, end);
    const auto own = make_ref<HostEvent>();
    uses.add(write, own, uses.begin());
    std::vector<Ref<Event>> found;
    uses.collect({9, {0, 4}, true}, found);
    EXPECT_EQ(found.size(), stands ? 1U : 2U);
    EXPECT_EQ(found.front().get(), own.get());
    end->finish({});  // for those that wait for it
    own->finish({});
  }
}

TEST(use_list, pending_is_what_has_not_ended) {
  UseList uses;
  const auto first = make_ref<HostEvent>();
  const auto second = make_ref<HostEvent>();
  uses.add({1, {0, 8}, true}, first, uses.begin());
  uses.add({2, {0, 8}, true}, second, uses.begin());
  EXPECT_EQ(uses.pending({0, 100}).size(), 2U);
  first->finish({});
  ASSERT_EQ(uses.pending({0, 100}).size(), 1U);
  EXPECT_EQ(uses.pending({0, 100}).front().get(), second.get());
}

TEST(use_list, of_two_submissions_at_once_neither_is_the_later) {
  UseList uses;
  const auto first = make_ref<HostEvent>();
  const auto second = make_ref<HostEvent>();
  const auto a = uses.begin();
  const auto b = uses.begin();
  uses.add({1, {0, 8}, true}, first, a);
  uses.add({1, {0, 8}, true}, second, b);
  EXPECT_EQ(uses.pending({0, 100}).size(), 2U);
}

// Like a driver's event that does not report its completion.
class silent_event final : public Event {
 public:
  bool ended = true;

 protected:
  void refresh() noexcept override {
    if (ended) {
      complete({});
    }
  }
};

TEST(use_list, does_not_grow_by_what_ended_unseen) {
  UseList uses;
  const auto running = make_ref<silent_event>();
  running->ended = false;
  uses.add({1, {0, 8}, true}, running, uses.begin());
  for (std::uint64_t other = 2; other < 10'000; ++other) {
    uses.add({other, {0, 8}, true}, make_ref<silent_event>(), uses.begin());
  }
  std::vector<Ref<Event>> waited;
  uses.collect({0, {0, 8}, true}, waited);
  EXPECT_LT(waited.size(), 100U);
  EXPECT_EQ(waited.front().get(), running.get());
  running->ended = true;
  EXPECT_TRUE(uses.pending({0, 8}).empty());
}

// Many pending events of the caller: the list stays short, and every one is waited for.
TEST(use_list, joins_many_events_of_the_callers) {
  UseList uses;
  constexpr std::size_t k_pending = 20'000;
  std::vector<Ref<HostEvent>> all;
  for (std::size_t each = 0; each < k_pending; ++each) {
    all.push_back(make_ref<HostEvent>());
    uses.add({0, {0, 8}, true}, all.back(), uses.begin());
  }
  std::vector<Ref<Event>> waited;
  uses.collect({1, {0, 8}, true}, waited);
  EXPECT_LT(waited.size(), 600U);
  const auto last = end_of_all(waited);
  for (std::size_t each = 0; each < k_pending; ++each) {
    ASSERT_TRUE(last->pending()) << each;
    all[(each * 7919) % k_pending]->finish({});  // in another order
  }
  EXPECT_FALSE(last->pending());
  EXPECT_TRUE(uses.pending({0, 8}).empty());
}

// A caller that waits for one of them may have to complete the others.
TEST(use_list, only_uses_of_the_same_bytes_and_kind_are_joined) {
  UseList uses;
  constexpr std::size_t k_each = 600;
  std::vector<Ref<HostEvent>> all;
  const auto add = [&](const ByteRange& range, bool writes) {
    all.push_back(make_ref<HostEvent>());
    uses.add({0, range, writes}, all.back(), uses.begin());
  };
  for (std::size_t each = 0; each < k_each; ++each) {
    add({0, 8}, false);
    add({0, 9}, each % 100 == 0);
    add({10 + each, 11 + each}, true);
  }
  std::vector<Ref<Event>> waited;
  uses.collect({1, {0, 1}, false}, waited);
  EXPECT_EQ(waited.size(), k_each / 100) << "more than what is written there";
  waited.clear();
  uses.collect({1, {10 + k_each / 2, 11 + k_each / 2}, true}, waited);
  ASSERT_EQ(waited.size(), 1U);
  EXPECT_EQ(waited.front().get(), all.at(3 * (k_each / 2) + 2).get());
  for (const auto& each : all) {
    each->finish({});
  }
  EXPECT_TRUE(uses.pending({0, 10 + k_each}).empty());
}

// Like a driver's event: waiting for it does not hold work back, unlike a library event.
class native_event final : public Event {
 public:
  void finish() noexcept { complete({}); }
  [[nodiscard]] void* native() noexcept override { return this; }
};

TEST(use_list, drivers_events_stay_what_they_are) {
  UseList uses;
  std::vector<Ref<Event>> all;
  for (std::size_t each = 0; each < 1000; ++each) {
    auto made = make_ref<native_event>();
    uses.add({0, {0, 8}, true}, made, uses.begin());
    all.emplace_back(std::move(made));
  }
  std::vector<Ref<Event>> waited;
  uses.collect({1, {0, 8}, true}, waited);
  const auto is_same = [](const auto& one, const auto& other) { return one.get() == other.get(); };
  EXPECT_TRUE(std::ranges::equal(waited, all, is_same));
  for (const auto& each : all) {
    static_cast<native_event&>(*each).finish();
  }
  EXPECT_TRUE(uses.pending({0, 8}).empty());
}

TEST(use_list, a_cancelled_use_leaves_nothing) {
  UseList uses;
  static_cast<void>(uses.begin());
  uses.cancel();
  EXPECT_TRUE(uses.pending({0, 8}).empty());
  EXPECT_FALSE(uses.ever_used());
}

}  // namespace
}  // namespace isthmus
