// SPDX-License-Identifier: Apache-2.0
#pragma once
// A table of records about some of a resource's blocks, by address. Thread-safe. Extracting a
// record and reinserting it needs no memory. A lookup in an empty table costs one load; in a
// non-empty table, it takes one of several locks and searches a map.

#include <array>
#include <atomic>
#include <map>

#include "core/hash.hpp"
#include "core/lock_guard.hpp"
#include "core/mutex.hpp"
#include "core/sizes.hpp"
#include "core/thread_safety.hpp"

namespace isthmus {

template <class Record>
class PointerTable {
 public:
  using Entry = typename std::map<const void*, Record>::node_type;

  // A relaxed load suffices: a thread that looks up a block's record received the block after the
  // record was inserted.
  [[nodiscard]] bool is_empty() const noexcept {
    return count_.load(std::memory_order_relaxed) == 0;
  }
  // Throws std::bad_alloc, without effect.
  void insert(const void* pointer, Record record) {
    auto& shard = shard_of(pointer);
    const LockGuard hold{shard.lock};
    if (shard.records.insert_or_assign(pointer, std::move(record)).second) {
      count_.fetch_add(1, std::memory_order_relaxed);
    }
  }
  // Creates an entry for `reinsert`. Throws std::bad_alloc.
  [[nodiscard]] static Entry make_entry(const void* pointer, Record record) {
    std::map<const void*, Record> single;
    single.emplace(pointer, std::move(record));
    return single.extract(single.begin());
  }
  // Removes and returns the entry of `pointer`; empty if there is none.
  [[nodiscard]] Entry extract(const void* pointer) noexcept {
    if (is_empty()) [[likely]] {
      return {};
    }
    auto& shard = shard_of(pointer);
    const LockGuard hold{shard.lock};
    auto entry = shard.records.extract(pointer);
    count_.fetch_sub(entry.empty() ? 0 : 1, std::memory_order_relaxed);
    return entry;
  }
  void reinsert(Entry entry) noexcept {
    if (entry.empty()) {
      return;
    }
    auto& shard = shard_of(entry.key());
    const LockGuard hold{shard.lock};
    const bool inserted = shard.records.insert(std::move(entry)).inserted;
    count_.fetch_add(inserted ? 1 : 0, std::memory_order_relaxed);
  }
  [[nodiscard]] bool has(const void* pointer) noexcept {
    if (is_empty()) {
      return false;
    }
    auto& shard = shard_of(pointer);
    const LockGuard hold{shard.lock};
    return shard.records.contains(pointer);
  }
  // Copies the record to `out`; false if there is none.
  [[nodiscard]] bool copy(const void* pointer, Record& out) noexcept {
    if (is_empty()) {
      return false;
    }
    auto& shard = shard_of(pointer);
    const LockGuard hold{shard.lock};
    const auto found = shard.records.find(pointer);
    if (found == shard.records.end()) {
      return false;
    }
    out = found->second;
    return true;
  }
  // Calls function(record) for each record, under the lock of its shard.
  template <class Visit>
  void visit(Visit&& function) {
    for (auto& shard : shards_) {
      const LockGuard hold{shard.lock};
      for (const auto& [pointer, record] : shard.records) {
        function(record);
      }
    }
  }

 private:
  struct alignas(64) Shard {
    Mutex lock;
    std::map<const void*, Record> records ISTHMUS_GUARDED_BY(lock);
  };
  [[nodiscard]] Shard& shard_of(const void* pointer) noexcept {
    return shards_[hash_of(address(pointer)) >> 60];
  }

  std::array<Shard, 16> shards_;
  std::atomic<std::size_t> count_{0};
};

}  // namespace isthmus
