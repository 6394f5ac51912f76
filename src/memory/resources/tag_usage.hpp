// SPDX-License-Identifier: Apache-2.0
#pragma once
// Counts of the live allocations under each tag. Thread-safe.
//
// A tag is looked up by the address of its text, without a lock. A new tag is added under a lock
// and never removed. An allocation with its free costs about 3 ns.

#include <array>
#include <atomic>
#include <cstdint>

#include "core/expects.hpp"
#include "core/lock_guard.hpp"
#include "core/mutex.hpp"
#include "core/sizes.hpp"
#include "memory/resources/usage_counter.hpp"

namespace isthmus {

class TagUsage {
 public:
  TagUsage() = default;
  TagUsage(const TagUsage&) = delete;
  TagUsage& operator=(const TagUsage&) = delete;
  ~TagUsage() {
    visit([](Entry& each) { delete &each; });
  }

  // Throws std::bad_alloc.
  [[nodiscard]] UsageCounter& counter_for(const char* tag) {
    ISTHMUS_EXPECTS(tag != nullptr);
    auto* const found = find(tag);
    return found != nullptr ? found->counter : add(tag);
  }
  // The counter of a tag for which `counter_for` was called before.
  [[nodiscard]] UsageCounter& existing_counter(const char* tag) noexcept {
    auto* const found = find(tag);
    ISTHMUS_EXPECTS(found != nullptr);
    return found->counter;
  }

  // Calls function(tag, counter) for each tag so far.
  template <class Function>
  void for_each(Function&& function) {
    visit([&](Entry& each) { function(each.tag, each.counter); });
  }

 private:
  struct Entry {
    const char* const tag;
    Entry* const next;
    UsageCounter counter{};
  };
  static constexpr std::size_t k_buckets = 64;

  [[nodiscard]] std::atomic<Entry*>& bucket_of(const char* tag) noexcept {
    constexpr std::uint64_t k_spread = 0x9E3779B97F4A7C15;  // 2^64 over the golden ratio (Knuth)
    return buckets_[address(tag) * k_spread >> 58];
  }
  [[nodiscard]] Entry* find(const char* tag) noexcept {
    auto* each = bucket_of(tag).load(std::memory_order_acquire);
    while (each != nullptr && each->tag != tag) {
      each = each->next;
    }
    return each;
  }
  [[gnu::noinline]] UsageCounter& add(const char* tag) {
    const LockGuard hold{lock_};
    auto* found = find(tag);
    if (found == nullptr) {
      auto& bucket = bucket_of(tag);
      found = new Entry{tag, bucket.load(std::memory_order_relaxed)};
      bucket.store(found, std::memory_order_release);
    }
    return found->counter;
  }
  template <class Visit>
  void visit(Visit&& visit) {
    for (auto& bucket : buckets_) {
      for (auto* each = bucket.load(std::memory_order_acquire); each != nullptr;) {
        auto* const next = each->next;
        visit(*each);
        each = next;
      }
    }
  }

  std::array<std::atomic<Entry*>, k_buckets> buckets_{};
  Mutex lock_;  // held while an entry is added
};

}  // namespace isthmus
