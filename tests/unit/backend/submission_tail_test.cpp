// SPDX-License-Identifier: Apache-2.0
#include "backend/submission_tail.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <thread>
#include <vector>

#include "support/without_memory.hpp"

namespace isthmus {
namespace {

Ref<HostEvent> new_event() { return make_ref<HostEvent>(); }

std::vector<const Event*> unfinished(SubmissionTail& tail) {
  std::vector<Ref<Event>> events;
  tail.add_unfinished(events);
  std::vector<const Event*> found;
  for (const auto& each : events) {
    found.push_back(each.get());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<const Event*> only(const Ref<HostEvent>& event) { return {event.get()}; }

TEST(submission_tail, of_a_new_queue_is_idle) {
  SubmissionTail tail;
  EXPECT_TRUE(tail.is_known_idle());
  EXPECT_FALSE(tail.has_off_queue());
  EXPECT_TRUE(unfinished(tail).empty());
  Ref<Event> last;
  EXPECT_TRUE(tail.has_single_end(last));
  EXPECT_FALSE(last);
}

TEST(submission_tail, is_the_last_submission) {
  SubmissionTail tail;
  const auto first = new_event();
  const auto second = new_event();
  tail.record(first, tail.reserve(), 0);
  tail.record(second, tail.reserve(), 0);
  EXPECT_TRUE(first->unique()) << "its completion is implied by that of the second";
  EXPECT_EQ(unfinished(tail), only(second));
  second->finish({});
  EXPECT_TRUE(tail.is_known_idle());
}

TEST(submission_tail, keeps_concurrent_submissions) {
  SubmissionTail tail;
  const auto first = new_event();
  const auto second = new_event();
  const auto began_first = tail.reserve();
  const auto began_second = tail.reserve();
  tail.record(first, began_first, 0);
  tail.record(second, began_second, 0);
  EXPECT_EQ(unfinished(tail).size(), 2U);
  Ref<Event> last;
  EXPECT_FALSE(tail.has_single_end(last));
  EXPECT_FALSE(last);
  first->finish({});
  EXPECT_TRUE(tail.has_single_end(last));
  EXPECT_EQ(last.get(), second.get());
  const auto third = new_event();
  tail.record(third, tail.reserve(), 0);
  EXPECT_EQ(unfinished(tail), only(third));
}

TEST(submission_tail, keeps_off_queue_events_until_a_submission_has_waited_for_them) {
  SubmissionTail tail;
  const auto elsewhere = new_event();
  static_cast<void>(tail.reserve());
  tail.insert_off_queue(elsewhere);
  EXPECT_TRUE(tail.has_off_queue());
  EXPECT_EQ(tail.unfinished_off_queue().get(), elsewhere.get());
  const auto unaware = new_event();
  tail.record(unaware, tail.reserve(), 0);
  EXPECT_TRUE(tail.has_off_queue());
  EXPECT_EQ(unfinished(tail).size(), 2U);
  std::vector<Ref<Event>> awaited;
  const auto limit = tail.add_off_queue(awaited);
  EXPECT_EQ(awaited.size(), 1U);
  const auto later = new_event();  // inserted while the next submission is in progress
  const auto begin = tail.reserve();
  static_cast<void>(tail.reserve());
  tail.insert_off_queue(later);
  const auto next = new_event();
  tail.record(next, begin, limit);
  awaited.clear();
  EXPECT_TRUE(elsewhere->unique());
  EXPECT_TRUE(tail.has_off_queue());
  EXPECT_EQ(tail.unfinished_off_queue().get(), later.get());
  later->finish({});
  EXPECT_FALSE(tail.unfinished_off_queue());
}

TEST(submission_tail, that_is_cancelled_leaves_nothing) {
  SubmissionTail tail;
  static_cast<void>(tail.reserve());
  tail.cancel();
  EXPECT_TRUE(tail.is_known_idle());
  EXPECT_TRUE(unfinished(tail).empty());
}

TEST(submission_tail, needs_memory_only_to_reserve) {
  SubmissionTail tail;
  EXPECT_THROW(
      {
        const support::without_memory now;
        static_cast<void>(tail.reserve());
      },
      std::bad_alloc);
  std::vector<std::uint64_t> begins;
  std::vector<Ref<HostEvent>> events;
  for (int each = 0; each < 20; ++each) {
    begins.push_back(tail.reserve());
    events.push_back(new_event());
  }
  {
    const support::without_memory now;
    for (std::size_t each = 0; each < begins.size(); ++each) {
      each % 4 == 0 ? tail.insert_off_queue(events[each])
                    : tail.record(events[each], begins[each], 0);
    }
  }
  EXPECT_EQ(unfinished(tail).size(), events.size());
}

// A submission of the model: the events that it follows are those that were recorded when it began,
// and the off-queue events that it waited for.
struct Submission {
  Ref<HostEvent> event;
  std::vector<const Event*> followed;
  bool is_off_queue = false;
};

// Random submissions, up to four at a time, compared with a model that keeps everything.
class Model {
 public:
  explicit Model(unsigned seed) : random_{seed} {}

  void step() {
    const auto choice = random_() % 8;
    if (choice < 3 && open_.size() < 4) {
      begin();
    } else if (choice < 6 && !open_.empty()) {
      end();
    } else if (choice == 6) {
      insert_off_queue();
    } else if (!recorded_.empty()) {
      recorded_[random_() % recorded_.size()].event->finish({});
    }
    check();
  }

 private:
  struct Open {
    std::uint64_t begin;
    std::uint64_t off_queue_limit;
    std::vector<const Event*> followed;
  };

  void begin() {
    Open next{};
    std::vector<Ref<Event>> awaited;
    if (tail_.has_off_queue() && random_() % 2 == 0) {
      next.off_queue_limit = tail_.add_off_queue(awaited);
    }
    for (const auto& each : recorded_) {
      const bool is_awaited = std::ranges::any_of(
          awaited, [&](const auto& event) { return event.get() == each.event.get(); });
      if (!each.is_off_queue || is_awaited) {
        next.followed.push_back(each.event.get());
      }
    }
    next.begin = tail_.reserve();
    open_.push_back(std::move(next));
  }
  void end() {
    const auto chosen = open_.begin() + static_cast<std::ptrdiff_t>(random_() % open_.size());
    if (random_() % 4 == 0) {
      tail_.cancel();
    } else {
      recorded_.push_back({new_event(), chosen->followed});
      tail_.record(recorded_.back().event, chosen->begin, chosen->off_queue_limit);
    }
    open_.erase(chosen);
  }
  void insert_off_queue() {
    static_cast<void>(tail_.reserve());
    recorded_.push_back({new_event(), {}, true});
    tail_.insert_off_queue(recorded_.back().event);
  }

  // The events that no recorded submission follows and that have not completed.
  [[nodiscard]] std::vector<const Event*> expected() const {
    std::vector<const Event*> result;
    for (const auto& each : recorded_) {
      const auto* event = each.event.get();
      const bool is_followed = std::ranges::any_of(recorded_, [&](const auto& later) {
        return std::ranges::find(later.followed, event) != later.followed.end();
      });
      if (!is_followed && !each.event->settled()) {
        result.push_back(event);
      }
    }
    std::sort(result.begin(), result.end());
    return result;
  }
  void check() {
    const auto events = expected();
    ASSERT_EQ(unfinished(tail_), events);
    EXPECT_EQ(tail_.is_known_idle(), events.empty());
    Ref<Event> last;
    EXPECT_EQ(tail_.has_single_end(last), events.size() <= 1);
    EXPECT_EQ(last.get(), events.size() == 1 ? events.front() : nullptr);
  }

  std::mt19937 random_;
  SubmissionTail tail_;
  std::vector<Open> open_;
  std::vector<Submission> recorded_;
};

TEST(submission_tail, is_that_of_a_model_that_keeps_everything) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    Model model{seed};
    for (int step = 0; step < 100 && !testing::Test::HasFailure(); ++step) {
      model.step();
    }
  }
}

TEST(submission_tail_concurrent, loses_no_submission) {
  SubmissionTail tail;
  constexpr int k_threads = 4;
  std::vector<Ref<HostEvent>> last(k_threads);
  std::vector<std::thread> threads;
  for (auto& own : last) {
    threads.emplace_back([&tail, &own] {
      for (int each = 0; each < 5000; ++each) {
        const auto begin = tail.reserve();
        own = new_event();
        tail.record(own, begin, 0);
      }
    });
  }
  for (auto& each : threads) {
    each.join();
  }
  EXPECT_FALSE(tail.is_known_idle());
  EXPECT_LE(unfinished(tail).size(), std::size_t{k_threads});
  const auto end = new_event();
  tail.record(end, tail.reserve(), 0);
  EXPECT_EQ(unfinished(tail), only(end));
}

}  // namespace
}  // namespace isthmus
