// SPDX-License-Identifier: Apache-2.0
// Observers that are added and removed while threads emit events.

#include "recorder/observers.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <memory>
#include <thread>
#include <vector>

#include "core/thread_number.hpp"

namespace isthmus {
namespace {

// Counts the calls, and detects a call after its removal: the removing thread writes `removed`
// without synchronization, as an owner that destroys its observer would.
class counting_observer final : public MemoryObserver {
 public:
  void on_memory_event(const MemoryEvent& event) noexcept override {
    calls.fetch_add(1, std::memory_order_relaxed);
    bytes.fetch_add(event.nbytes, std::memory_order_relaxed);
    if (removed) {
      late.fetch_add(1, std::memory_order_relaxed);
    }
  }

  std::atomic<std::uint64_t> calls{0};
  std::atomic<std::uint64_t> bytes{0};
  std::atomic<std::uint64_t> late{0};
  bool removed = false;
};

void emit_bytes(MemoryEventKind kind, std::size_t nbytes) {
  observe(kind, [&] { return MemoryEvent{.kind = kind, .nbytes = nbytes}; });
}

// Threads that emit events of all kinds until the object is destroyed.
class emitting_threads {
 public:
  explicit emitting_threads(unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      threads_.emplace_back([this] {
        for (unsigned round = 0; !stop_.load(std::memory_order_relaxed); ++round) {
          emit_bytes(static_cast<MemoryEventKind>(round % k_memory_event_kinds), 1);
          emitted_.fetch_add(1, std::memory_order_relaxed);
        }
      });
    }
  }
  ~emitting_threads() {
    stop_ = true;
    for (auto& each : threads_) {
      each.join();
    }
  }
  emitting_threads(const emitting_threads&) = delete;
  emitting_threads& operator=(const emitting_threads&) = delete;

  // Returns after the threads have emitted `count` more events together.
  void await(std::uint64_t count) const {
    const auto until = emitted_.load() + count;
    while (emitted_.load() < until) {
      std::this_thread::yield();
    }
  }

 private:
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> emitted_{0};
  std::vector<std::thread> threads_;
};

TEST(observers, receive_the_kinds_that_they_want) {
  counting_observer frees;
  counting_observer all;
  emit_bytes(MemoryEventKind::free, 1);
  ASSERT_TRUE(add_observer(frees, kinds_of(MemoryEventKind::free, MemoryEventKind::shrink)));
  EXPECT_TRUE(is_observed(MemoryEventKind::free));
  EXPECT_FALSE(is_observed(MemoryEventKind::allocate));
  ASSERT_TRUE(add_observer(all, k_all_memory_events));
  EXPECT_TRUE(is_observed(MemoryEventKind::allocate));
  emit_bytes(MemoryEventKind::free, 2);
  emit_bytes(MemoryEventKind::allocate, 4);
  emit_bytes(MemoryEventKind::oom_stage, 8);
  remove_observer(all);
  EXPECT_FALSE(is_observed(MemoryEventKind::oom_stage));
  emit_bytes(MemoryEventKind::shrink, 16);
  emit_bytes(MemoryEventKind::oom_stage, 32);
  remove_observer(frees);
  emit_bytes(MemoryEventKind::free, 64);
  EXPECT_EQ(frees.bytes, 2U + 16U);
  EXPECT_EQ(all.bytes, 2U + 4U + 8U);
}

TEST(observers, are_limited_in_number) {
  std::vector<counting_observer> some(k_max_observers);
  for (auto& each : some) {
    ASSERT_TRUE(add_observer(each, k_all_memory_events));
  }
  counting_observer extra;
  EXPECT_FALSE(add_observer(extra, k_all_memory_events));
  remove_observer(some[3]);
  EXPECT_TRUE(add_observer(extra, k_all_memory_events));
  emit_bytes(MemoryEventKind::copy, 1);
  some[3].removed = true;
  EXPECT_EQ(some[3].calls, 0U);
  EXPECT_EQ(extra.calls, 1U);
  remove_observer(extra);
  for (std::size_t at = 0; at < some.size(); ++at) {
    if (at != 3) {
      EXPECT_EQ(some[at].calls, 1U);
      remove_observer(some[at]);
    }
  }
}

// Emits an event in response to each event.
class nesting_observer final : public MemoryObserver {
 public:
  void on_memory_event(const MemoryEvent& event) noexcept override {
    ++calls;
    if (calls < 100) {
      emit_bytes(event.kind, event.nbytes);
    }
  }
  unsigned calls = 0;
};

TEST(observers, are_not_called_for_events_that_they_cause) {
  nesting_observer nesting;
  counting_observer other;
  ASSERT_TRUE(add_observer(nesting, k_all_memory_events));
  ASSERT_TRUE(add_observer(other, k_all_memory_events));
  emit_bytes(MemoryEventKind::allocate, 1);
  emit_bytes(MemoryEventKind::allocate, 1);
  remove_observer(nesting);
  emit_bytes(MemoryEventKind::allocate, 1);
  remove_observer(other);
  EXPECT_EQ(nesting.calls, 2U);
  EXPECT_EQ(other.calls, 3U) << "the guard is per emission, and its end is noticed";
}

TEST(observers, are_not_called_after_removal) {
  const emitting_threads threads{4};
  counting_observer lasting;
  ASSERT_TRUE(add_observer(lasting, k_all_memory_events));
  for (int round = 0; round < 40; ++round) {
    auto observer = std::make_unique<counting_observer>();
    ASSERT_TRUE(add_observer(*observer, k_all_memory_events));
    threads.await(round % 10 == 0 ? 200 : 0);
    remove_observer(*observer);
    observer->removed = true;
    const auto calls = observer->calls.load();
    threads.await(8);
    EXPECT_EQ(observer->calls, calls);
    EXPECT_EQ(observer->late, 0U);
    EXPECT_TRUE(round % 10 != 0 || calls > 0);
  }
  remove_observer(lasting);
  EXPECT_GT(lasting.calls, 0U);
}

TEST(observers, are_added_and_removed_by_several_threads) {
  const emitting_threads threads{2};
  std::vector<std::thread> owners;
  for (int i = 0; i < 3; ++i) {
    owners.emplace_back([] {
      for (int round = 0; round < 20; ++round) {
        auto observer = std::make_unique<counting_observer>();
        ASSERT_TRUE(add_observer(*observer, kinds_of(MemoryEventKind::free)));
        emit_bytes(MemoryEventKind::free, 1);
        EXPECT_GE(observer->calls, 1U);
        remove_observer(*observer);
        observer->removed = true;
      }
    });
  }
  for (auto& each : owners) {
    each.join();
  }
  EXPECT_FALSE(is_observed(MemoryEventKind::free));
}

// More threads than have numbers at once: the others take turns.
TEST(observers, are_removed_beside_threads_without_a_number) {
  std::barrier together(static_cast<std::ptrdiff_t>(k_thread_numbers) + 8);
  std::vector<std::thread> threads;
  counting_observer lasting;
  ASSERT_TRUE(add_observer(lasting, k_all_memory_events));
  for (std::uint32_t i = 0; i < k_thread_numbers + 8; ++i) {
    threads.emplace_back([&together, i] {
      static_cast<void>(claim_thread_number());
      together.arrive_and_wait();
      for (int round = 0; round < 20; ++round) {
        emit_bytes(MemoryEventKind::copy, 1);
        if (i % 16 == 0 && round % 5 == 0) {
          auto observer = std::make_unique<counting_observer>();
          if (add_observer(*observer, k_all_memory_events)) {
            emit_bytes(MemoryEventKind::copy, 1);
            EXPECT_GE(observer->calls, 1U);
            remove_observer(*observer);
            observer->removed = true;
          }
        }
      }
    });
  }
  for (auto& each : threads) {
    each.join();
  }
  remove_observer(lasting);
  EXPECT_GE(lasting.calls, 20U * (k_thread_numbers + 8));
}

}  // namespace
}  // namespace isthmus
