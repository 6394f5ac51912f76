// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/run_heap.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <random>
#include <vector>

namespace isthmus {
namespace {

using index = RunHeap::Index;

// The model: a map of the pages (`grain`) that are allocated.
class model {
 public:
  explicit model(std::vector<bool> usable) : usable_{std::move(usable)}, taken_(usable_.size()) {}

  [[nodiscard]] bool fits(index count) const {
    index run = 0;
    for (std::size_t at = 0; at < usable_.size(); ++at) {
      run = usable_[at] && !taken_[at] ? run + 1 : 0;
      if (run >= count) {
        return true;
      }
    }
    return false;
  }
  // The heap tries the first run in the list for this size, then longer lists. It may miss a run
  // further on in the first list, but always finds one of this length.
  [[nodiscard]] bool fits_surely(index count) const { return fits(count + count / 16 + 1); }
  void take(index first, index count) {
    for (auto at = first; at < first + count; ++at) {
      ASSERT_TRUE(usable_[at] && !taken_[at]) << at << " was handed out twice";
      taken_[at] = true;
    }
    runs_[first] = count;
  }
  void give(index first) {
    for (auto at = first; at < first + runs_.at(first); ++at) {
      taken_[at] = false;
    }
    runs_.erase(first);
  }
  void set_usable(index first, index count, bool usable) {
    std::fill_n(usable_.begin() + first, count, usable);
  }
  [[nodiscard]] const std::map<index, index>& runs() const { return runs_; }
  [[nodiscard]] std::uint64_t free_grains() const {
    std::uint64_t found = 0;
    for (std::size_t at = 0; at < usable_.size(); ++at) {
      found += usable_[at] && !taken_[at] ? 1U : 0U;
    }
    return found;
  }

 private:
  std::vector<bool> usable_;
  std::vector<bool> taken_;
  std::map<index, index> runs_;
};

index run_of(std::vector<PoolPage>& table, index at) {
  const auto* first = first_of_run(&table[at]);
  return first == nullptr ? RunHeap::k_none : static_cast<index>(first - table.data());
}

class run_heap_test : public testing::Test {
 protected:
  using run = std::pair<index, index>;  // first, count
  [[nodiscard]] std::vector<run> free_runs(index at_least = 1) const {
    std::vector<run> found;
    heap_.visit_free(at_least,
                     [&](index first, index count, Ticket) { found.emplace_back(first, count); });
    std::sort(found.begin(), found.end());
    return found;
  }

  index take(index count, QueueFences::EntryIndex whom) {
    const auto first = heap_.find(count, whom);
    if (first != RunHeap::k_none) {
      heap_.allocate(first, count);
    }
    return first;
  }

  void settle() {
    RunHeap::Progress seen;
    while (seen.next != RunHeap::k_none) {
      seen = heap_.coalesce(seen.next);
    }
  }
  void unite_all(QueueFences::EntryIndex whom) {
    RunHeap::Progress seen;
    while (seen.next != RunHeap::k_none) {
      seen = heap_.unite_all(seen.next, whom);
    }
  }
  // Other threads use the heap, as `between()` does, while the lock is free.
  template <class Between>
  [[nodiscard]] index unite(index wanted, QueueFences::EntryIndex whom, const Between& between,
                            int most_looks = RunHeap::k_max_examined) {
    RunHeap::Search seen;
    heap_.unite(seen, wanted, whom, most_looks);
    while (seen.next != RunHeap::k_none && seen.found == RunHeap::k_none) {
      between();
      heap_.unite(seen, wanted, whom, most_looks);
    }
    return seen.found;
  }
  [[nodiscard]] bool unite(index wanted, QueueFences::EntryIndex whom) {
    return unite(wanted, whom, [] {}) != RunHeap::k_none;
  }
  // Frees `count` adjacent runs of one page each. Entry 2 can use all of them, but their tickets
  // keep them from being joined when they are freed.
  std::vector<index> free_apart(index count) {
    std::vector<index> all(count);
    for (auto& each : all) {
      each = take(1, QueueFences::k_no_queue);
    }
    for (index each = 0; each < count; ++each) {
      heap_.deallocate(all[each], each % 2 == 0 ? Ticket{2, 1} : Ticket{});
    }
    return all;
  }

  // Whether the page is a free run of length 1.
  [[nodiscard]] bool is_alone(index grain) const {
    const auto free = free_runs();
    return std::binary_search(free.begin(), free.end(), run{grain, 1});
  }

  static constexpr index k_pages = 700;
  std::vector<PoolPage> table_ = std::vector<PoolPage>(k_pages);
  std::vector<Ticket> tickets_{table_.size()};
  Ref<QueueFences> fences_ = make_ref<QueueFences>();
  std::unique_ptr<PoolPageSet> borders_ = std::make_unique<PoolPageSet>();
  RunHeap heap_{table_.data(), tickets_.data(), borders_.get(), *fences_};
};

TEST_F(run_heap_test, serves_nothing_before_it_has_a_region) {
  EXPECT_EQ(take(1, QueueFences::k_no_queue), RunHeap::k_none);
  EXPECT_TRUE(free_runs().empty());
}

TEST_F(run_heap_test, joins_what_lies_side_by_side) {
  heap_.add(1, 100);
  const auto a = take(30, QueueFences::k_no_queue);
  const auto b = take(30, QueueFences::k_no_queue);
  const auto c = take(40, QueueFences::k_no_queue);
  EXPECT_EQ(take(1, QueueFences::k_no_queue), RunHeap::k_none);
  heap_.deallocate(a, {});
  heap_.deallocate(c, {});
  EXPECT_EQ(free_runs(), (std::vector<run>{{1, 30}, {61, 40}}));
  EXPECT_EQ(free_runs(31), (std::vector<run>{{61, 40}}));
  heap_.deallocate(b, {});
  EXPECT_EQ(free_runs(), (std::vector<run>{{1, 100}}));
}

TEST_F(run_heap_test, damage_is_found_where_it_is) {
  heap_.add(1, 100);
  const auto taken = take(30, QueueFences::k_no_queue);
  EXPECT_EQ(heap_.find_damage(1, 100).at, RunHeap::k_none);
  EXPECT_EQ(heap_.find_damage(1, 100).free, 70U);
  const auto expect_found = [&](std::atomic<std::uint32_t>& word, index where) {
    const auto was = word.fetch_add(1);
    EXPECT_EQ(heap_.find_damage(1, 100).at, where);
    word = was;
  };
  expect_found(table_[taken + 7].span, taken);  // inside the page run
  expect_found(table_[100].span, 31);           // the last page of the free run
  table_[31].set_links(99, RunHeap::k_none);    // not the first in its list
  EXPECT_EQ(heap_.find_damage(1, 100).at, 31U);
  table_[31].set_links(RunHeap::k_none, RunHeap::k_none);
  EXPECT_EQ(heap_.find_damage(1, 100).at, RunHeap::k_none);
}

TEST_F(run_heap_test, what_is_free_waits_for_no_neighbours_work) {
  const Ticket waits{2, 1};
  heap_.add(1, 90);
  const auto a = take(30, QueueFences::k_no_queue);
  const auto b = take(30, QueueFences::k_no_queue);
  const auto c = take(30, QueueFences::k_no_queue);
  heap_.deallocate(a, {});
  heap_.deallocate(b, waits);
  settle();
  EXPECT_EQ(free_runs(), (std::vector<run>{{1, 30}, {31, 30}}));
  EXPECT_EQ(take(30, 3), a);
  heap_.deallocate(a, {});
  heap_.deallocate(c, Ticket{3, 1});
  for (QueueFences::EntryIndex whom : {0U, 3U}) {
    EXPECT_FALSE(unite(60, whom));
    EXPECT_EQ(take(60, whom), RunHeap::k_none);
  }
  EXPECT_FALSE(unite(61, 2)) << "what lies behind waits for another queue";
  EXPECT_EQ(take(60, 2), RunHeap::k_none);
  EXPECT_TRUE(unite(60, 2));
  EXPECT_EQ(free_runs(), (std::vector<run>{{1, 60}, {61, 30}}));
  EXPECT_EQ(heap_.free_pages(), 90U);
  EXPECT_EQ(take(60, 2), 1U);
  EXPECT_EQ(heap_.ticket_of(1), waits);
}

// More boundaries than one step inspects.
TEST_F(run_heap_test, continues_where_the_last_search_ended) {
  heap_.add(1, 650);
  std::vector<index> all(650);
  for (auto& each : all) {
    each = take(1, QueueFences::k_no_queue);
  }
  for (index each = 0; each < 600; ++each) {
    heap_.deallocate(all[each], Ticket{2 + each % 2, 1});
  }
  heap_.deallocate(all[600], Ticket{3, 1});
  heap_.deallocate(all[601], {});
  EXPECT_EQ(heap_.neighbours(), 600U);
  RunHeap::Search one_look;
  heap_.unite(one_look, 3, 3);
  EXPECT_NE(one_look.next, RunHeap::k_none);
  EXPECT_EQ(one_look.found, RunHeap::k_none);
  settle();
  EXPECT_EQ(heap_.neighbours(), 600U) << "nothing joins";
  EXPECT_FALSE(unite(4, 3));
  EXPECT_TRUE(unite(3, 3));
  EXPECT_EQ(take(3, 3), all[599]);
  EXPECT_EQ(heap_.find_damage(1, 650).at, RunHeap::k_none);
}

// However many neighbours are usable: other threads wait for the lock during each step.
TEST_F(run_heap_test, examines_and_coalesces_few_runs_at_a_time) {
  heap_.add(1, 690);
  free_apart(690);
  int holds = 0;
  auto left = heap_.neighbours();
  const auto expect_few = [&] {
    ++holds;
    EXPECT_LE(left - heap_.neighbours(), RunHeap::k_max_examined);
    left = heap_.neighbours();
  };
  EXPECT_EQ(unite(690, 2, expect_few), 1U);
  expect_few();
  EXPECT_GE(holds, 4) << "counted, then joined";
  EXPECT_EQ(left, 0U);
  EXPECT_EQ(heap_.find_damage(1, 690).at, RunHeap::k_none);
}

TEST_F(run_heap_test, unites_all_a_few_runs_at_a_time) {
  heap_.add(1, 690);
  free_apart(690);
  EXPECT_NE(heap_.unite_all(1, 2).next, RunHeap::k_none);
  EXPECT_GE(heap_.neighbours(), 689U - RunHeap::k_max_examined);
  unite_all(2);
  EXPECT_EQ(free_runs(), (std::vector<run>{{1, 690}}));
}

// Runs that were counted may be allocated before they are joined, and others may become free.
TEST_F(run_heap_test, unites_nothing_that_was_taken_meanwhile) {
  for (const std::size_t gone : {0U, 1U, 300U, 598U, 599U}) {
    for (const int after : {1, 2, 3}) {
      SCOPED_TRACE(testing::Message() << gone << " goes after hold " << after);
      heap_.add(1, 600);
      const auto all = free_apart(600);
      int holds = 0;
      bool is_taken = false;
      const auto found = unite(600, 2, [&] {
        if (++holds == after && is_alone(all[gone])) {
          heap_.allocate(all[gone], 1);
          is_taken = true;
        }
      });
      EXPECT_EQ(found != RunHeap::k_none, !is_taken);
      if (is_taken) {
        heap_.deallocate(all[gone], {});
        EXPECT_TRUE(unite(600, 2));
      }
      EXPECT_EQ(heap_.find_damage(1, 600).at, RunHeap::k_none);
      heap_.remove(1, 1, 600);
    }
  }
}

TEST_F(run_heap_test, unites_no_more_than_are_enough) {
  heap_.add(1, 90);
  const auto a = take(30, QueueFences::k_no_queue);
  const auto b = take(10, QueueFences::k_no_queue);
  const auto c = take(50, QueueFences::k_no_queue);
  heap_.deallocate(a, {});
  heap_.deallocate(b, Ticket{2, 1});
  heap_.deallocate(c, {});
  EXPECT_TRUE(unite(40, 2));
  EXPECT_EQ(take(40, 2), a);
  EXPECT_EQ(take(50, 3), c) << "which waits for nobody";
}

TEST_F(run_heap_test, unites_all_that_is_good_for_one_queue) {
  heap_.add(1, 60);
  const auto waits = Ticket{2, 1};
  std::array<index, 6> all{};
  for (auto& each : all) {
    each = take(10, QueueFences::k_no_queue);
  }
  heap_.deallocate(all[0], {});
  heap_.deallocate(all[1], waits);
  heap_.deallocate(all[2], Ticket{3, 1});
  heap_.deallocate(all[4], waits);
  heap_.deallocate(all[5], {});
  unite_all(2);
  EXPECT_EQ(free_runs(), (std::vector<run>{{1, 20}, {21, 10}, {41, 20}}));
  EXPECT_EQ(heap_.ticket_of(1), waits);
  EXPECT_EQ(heap_.ticket_of(41), waits);
  EXPECT_EQ(heap_.free_pages(), 50U);
}

TEST_F(run_heap_test, never_joins_two_regions) {
  heap_.add(1, 10);
  heap_.add(12, 10);
  EXPECT_EQ(take(11, QueueFences::k_no_queue), RunHeap::k_none);
  const auto a = take(10, QueueFences::k_no_queue);
  const auto b = take(10, QueueFences::k_no_queue);
  heap_.deallocate(a, {});
  heap_.deallocate(b, {});
  EXPECT_EQ(free_runs(), (std::vector<run>{{1, 10}, {12, 10}}));
  heap_.remove(1, 1, 10);
  EXPECT_EQ(free_runs(), (std::vector<run>{{12, 10}}));
}

TEST_F(run_heap_test, what_lies_around_a_removed_region_stays) {
  heap_.add(1, 100);
  heap_.remove(1, 41, 20);
  EXPECT_EQ(free_runs(), (std::vector<run>{{1, 40}, {61, 40}}));
  EXPECT_EQ(heap_.free_pages(), 80U);
  heap_.remove(1, 1, 10);
  heap_.remove(61, 91, 10);
  EXPECT_EQ(free_runs(), (std::vector<run>{{11, 30}, {61, 30}}));
  const auto a = take(30, QueueFences::k_no_queue);
  heap_.deallocate(a, {});
  EXPECT_EQ(free_runs(), (std::vector<run>{{11, 30}, {61, 30}})) << "joined over a hole";
}

TEST_F(run_heap_test, an_exact_length_is_found_again) {
  heap_.add(1, 500);
  const auto a = take(37, QueueFences::k_no_queue);
  static_cast<void>(take(1, QueueFences::k_no_queue));  // keeps it from being joined
  heap_.deallocate(a, {});
  EXPECT_EQ(take(37, QueueFences::k_no_queue), a);
}

TEST_F(run_heap_test, does_what_the_model_does) {
  std::mt19937 random{7};
  std::vector<bool> usable(k_pages, false);
  for (const auto& [first, count] : {std::pair{1U, 300U}, {302U, 1U}, {304U, 390U}}) {
    heap_.add(first, count);
    std::fill_n(usable.begin() + first, count, true);
  }
  model known{usable};
  std::vector<run> removed;
  for (int step = 0; step < 30'000; ++step) {
    if (random() % 16 == 0) {
      const auto free = free_runs(3);
      if (removed.size() < 6 && !free.empty()) {
        const auto [first, count] = free[random() % free.size()];
        const auto skip = static_cast<index>(random() % (count / 2));
        const run gone{first + skip, 1 + static_cast<index>(random() % (count - skip))};
        heap_.remove(first, gone.first, gone.second);
        known.set_usable(gone.first, gone.second, false);
        removed.push_back(gone);
      } else if (!removed.empty()) {  // smaller than it was, so that regions stay apart
        const auto [first, count] = removed.back();
        removed.pop_back();
        if (count > 2) {
          heap_.add(first + 1, count - 2);
          known.set_usable(first + 1, count - 2, true);
        }
      }
    } else if (random() % 2 == 0) {
      const auto count = static_cast<index>(1 + random() % (random() % 4 == 0 ? 200 : 12));
      const auto skip = static_cast<index>(random() % 8 == 0 ? random() % 5 : 0);
      auto first = take(count + 2 * skip, QueueFences::k_no_queue);
      if (first == RunHeap::k_none) {
        ASSERT_FALSE(known.fits_surely(count + 2 * skip)) << count;
        continue;
      }
      if (skip != 0) {
        first = heap_.keep_part(first, skip, count);
      }
      known.take(first, count);
    } else if (!known.runs().empty()) {
      const auto chosen = std::next(known.runs().begin(),
                                    static_cast<std::ptrdiff_t>(random() % known.runs().size()));
      const auto first = chosen->first;
      heap_.deallocate(first, {});
      known.give(first);
    }
    ASSERT_EQ(heap_.free_pages(), known.free_grains());
    if (step % 64 == 0) {
      std::vector<index> owner(k_pages, RunHeap::k_none);
      for (const auto& [first, count] : known.runs()) {
        std::fill_n(owner.begin() + first, count, first);
      }
      for (index at = 1; at < k_pages; ++at) {
        ASSERT_EQ(run_of(table_, at), owner[at]) << at;
      }
      std::uint64_t seen = 0;
      for (const auto& [first, count] : free_runs()) {
        seen += count;
      }
      ASSERT_EQ(seen, known.free_grains());
    }
  }
}

// Where this count is 0, a refused request skips the search for runs to join.
TEST_F(run_heap_test, counts_free_runs_side_by_side) {
  constexpr index k_all = 600;
  const std::array<Ticket, 3> tickets{Ticket{}, {2, 1}, {3, 1}};
  const std::array<QueueFences::EntryIndex, 3> entries{QueueFences::k_no_queue, 2, 3};
  std::mt19937 random{11};
  std::vector<index> taken;
  std::uint64_t most = 0;
  heap_.add(1, k_all);
  const auto take_or_give = [&](QueueFences::EntryIndex whom) {
    if (random() % 2 == 0 && !taken.empty()) {
      std::swap(taken.at(random() % taken.size()), taken.back());
      heap_.deallocate(taken.back(), tickets.at(random() % tickets.size()));
      taken.pop_back();
    } else if (const auto first = take(static_cast<index>(1 + random() % 12), whom);
               first != RunHeap::k_none) {
      taken.push_back(first);
    }
  };
  for (int step = 0; step < 20'000; ++step) {
    const auto whom = entries.at(random() % entries.size());
    switch (random() % 16) {
      case 0: settle(); break;
      case 1: unite_all(whom); break;
      case 2: {  // other threads allocate and free after every few steps
        const auto wanted = static_cast<index>(1 + random() % 40);
        const auto found = unite(
            wanted, whom, [&] { take_or_give(entries.at(random() % entries.size())); },
            static_cast<int>(1 + random() % 8));
        ASSERT_TRUE(found == RunHeap::k_none || heap_.length_of(found) >= wanted);
        break;
      }
      default: take_or_give(whom);
    }
    std::uint64_t pairs = 0;
    auto end = RunHeap::k_none;
    for (const auto& [first, count] : free_runs()) {
      pairs += first == end ? 1 : 0;
      end = first + count;
    }
    ASSERT_EQ(heap_.neighbours(), pairs) << step;
    ASSERT_EQ(heap_.find_damage(1, k_all).neighbours, pairs) << step;
    most = std::max(most, pairs);
  }
  EXPECT_GT(most, 3U) << "or nothing was tested";
}

}  // namespace
}  // namespace isthmus
