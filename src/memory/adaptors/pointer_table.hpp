// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a resource records of some of its blocks, by address. Thread-safe. Extracting a note and
// reinserting it needs no memory. A lookup in an empty table costs a load; else a lock, one of
// several, and a search among the notes.

#include <array>
#include <atomic>
#include <map>
#include <mutex>

#include "core/hash.hpp"
#include "core/sizes.hpp"

namespace isthmus {

template <class Note>
class PointerTable {
 public:
  using Entry = typename std::map<const void*, Note>::node_type;

  // A relaxed load suffices: a thread that looks up a block's note got the block after the note was
  // inserted.
  [[nodiscard]] bool is_empty() const noexcept {
    return count_.load(std::memory_order_relaxed) == 0;
  }
  // Throws std::bad_alloc, without effect.
  void insert(const void* pointer, Note note) {
    auto& shard = shard_of(pointer);
    const std::lock_guard hold{shard.lock};
    if (shard.notes.insert_or_assign(pointer, std::move(note)).second) {
      count_.fetch_add(1, std::memory_order_relaxed);
    }
  }
  // For `reinsert`. Throws std::bad_alloc.
  [[nodiscard]] static Entry make_entry(const void* pointer, Note note) {
    std::map<const void*, Note> single;
    single.emplace(pointer, std::move(note));
    return single.extract(single.begin());
  }
  // Empty if there is none.
  [[nodiscard]] Entry extract(const void* pointer) noexcept {
    if (is_empty()) [[likely]] {
      return {};
    }
    auto& shard = shard_of(pointer);
    const std::lock_guard hold{shard.lock};
    auto entry = shard.notes.extract(pointer);
    count_.fetch_sub(entry.empty() ? 0 : 1, std::memory_order_relaxed);
    return entry;
  }
  void reinsert(Entry entry) noexcept {
    if (entry.empty()) {
      return;
    }
    auto& shard = shard_of(entry.key());
    const std::lock_guard hold{shard.lock};
    const bool inserted = shard.notes.insert(std::move(entry)).inserted;
    count_.fetch_add(inserted ? 1 : 0, std::memory_order_relaxed);
  }
  [[nodiscard]] bool has(const void* pointer) noexcept {
    if (is_empty()) {
      return false;
    }
    auto& shard = shard_of(pointer);
    const std::lock_guard hold{shard.lock};
    return shard.notes.contains(pointer);
  }
  // False if there is none.
  [[nodiscard]] bool copy(const void* pointer, Note& out) noexcept {
    if (is_empty()) {
      return false;
    }
    auto& shard = shard_of(pointer);
    const std::lock_guard hold{shard.lock};
    const auto found = shard.notes.find(pointer);
    if (found == shard.notes.end()) {
      return false;
    }
    out = found->second;
    return true;
  }
  // Calls function(note) for each, under the lock of its shard.
  template <class Visit>
  void visit(Visit&& function) {
    for (auto& shard : shards_) {
      const std::lock_guard hold{shard.lock};
      for (const auto& [pointer, note] : shard.notes) {
        function(note);
      }
    }
  }

 private:
  struct alignas(64) Shard {
    std::mutex lock;
    std::map<const void*, Note> notes;
  };
  [[nodiscard]] Shard& shard_of(const void* pointer) noexcept {
    return shards_[hash_of(address(pointer)) >> 60];
  }

  std::array<Shard, 16> shards_;
  std::atomic<std::size_t> count_{0};
};

}  // namespace isthmus
