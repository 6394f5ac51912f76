// SPDX-License-Identifier: Apache-2.0
// One list used by many threads. A thread that collects waits for everything added before, directly
// or through what it waits for, and never for anything that waits for it.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "memory/records/use_list.hpp"

namespace isthmus {
namespace {

// Like a driver's event, so that no other event stands for it.
class driver_event final : public Event {
 public:
  void finish() noexcept { complete({}); }
  [[nodiscard]] void* native() noexcept override { return this; }
};

struct submission {
  Use what;
  Ref<driver_event> ended;
  std::vector<Ref<Event>> after;
  std::size_t added_before = 0;  // number of submissions added before it collected
};

// All submissions, in the order in which they were added.
class submission_log {
 public:
  [[nodiscard]] std::size_t size() {
    const std::lock_guard hold{lock_};
    return all_.size();
  }
  void add(submission made) {
    const std::lock_guard hold{lock_};
    all_.push_back(std::move(made));
  }
  [[nodiscard]] const std::vector<submission>& all() const { return all_; }

 private:
  std::mutex lock_;
  std::vector<submission> all_;
};

constexpr std::size_t k_bytes = 400;

// Small uses of many queues of one device, and occasionally a write that covers many of them.
void submit_some(UseList& uses, submission_log& log, unsigned seed) {
  const auto* const where = reinterpret_cast<const Device*>(64);
  std::mt19937 random{seed};
  for (std::uint64_t each = 0; each < 150; ++each) {
    const std::size_t begin = random() % k_bytes;
    const std::size_t nbytes = random() % 30 == 0 ? random() % k_bytes : 1 + random() % 3;
    submission made{{1 + seed * 1000 + each,
                     {begin, begin + nbytes + 1},
                     random() % 3 != 0,
                     false,
                     true,
                     where},
                    make_ref<driver_event>(),
                    {},
                    log.size()};
    const auto began_at = uses.begin();
    uses.collect(made.what, made.after);
    uses.add(made.what, made.ended, began_at);
    log.add(std::move(made));
  }
}

// Positions in the log: of everything that an operation comes after.
using positions = std::set<std::size_t>;
void add_all_before(const std::vector<std::vector<std::size_t>>& after, std::size_t of,
                    positions& found) {
  std::vector<std::size_t> next{of};
  while (!next.empty()) {
    const auto each = next.back();
    next.pop_back();
    for (const auto earlier : after[each]) {
      if (found.insert(earlier).second) {
        next.push_back(earlier);
      }
    }
  }
}

TEST(use_list_concurrent, collecting_includes_every_use_added_before) {
  for (unsigned round = 0; round < 4; ++round) {
    UseList uses;
    submission_log log;
    std::vector<std::thread> threads;
    for (unsigned each = 0; each < 4; ++each) {
      threads.emplace_back([&, each] { submit_some(uses, log, 10 * round + each); });
    }
    for (auto& each : threads) {
      each.join();
    }
    const auto& all = log.all();
    std::map<const Event*, std::size_t> position;
    for (std::size_t each = 0; each < all.size(); ++each) {
      position[all[each].ended.get()] = each;
    }
    std::vector<std::vector<std::size_t>> after(all.size());
    for (std::size_t each = 0; each < all.size(); ++each) {
      for (const auto& before : all[each].after) {
        after[each].push_back(position.at(before.get()));
      }
    }
    for (std::size_t each = 0; each < all.size(); ++each) {
      positions before;
      add_all_before(after, each, before);
      ASSERT_FALSE(before.contains(each)) << "it waits for itself";
      for (std::size_t earlier = 0; earlier < all[each].added_before; ++earlier) {
        const auto& a = all[each].what;
        const auto& b = all[earlier].what;
        ASSERT_TRUE(!a.range.overlaps(b.range) || (!a.writes && !b.writes) ||
                    before.contains(earlier))
            << "round " << round << ": " << each << " does not wait for " << earlier;
      }
    }
    for (const auto& each : all) {
      each.ended->finish();
    }
    EXPECT_TRUE(uses.is_known_idle());
  }
}

}  // namespace
}  // namespace isthmus
