// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a resource records of some of its blocks, by address. Thread-safe. Taking a note out and
// putting it back needs no memory. A lookup in an empty table costs a load; else a lock, one of
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
  // put.
  [[nodiscard]] bool is_empty() const noexcept {
    return count_.load(std::memory_order_relaxed) == 0;
  }
  // Throws std::bad_alloc, without effect.
  void put(const void* pointer, Note note) {
    auto& in = shard_of(pointer);
    const std::lock_guard hold{in.lock};
    if (in.notes.insert_or_assign(pointer, std::move(note)).second) {
      count_.fetch_add(1, std::memory_order_relaxed);
    }
  }
  // For `put_back`. Throws std::bad_alloc.
  [[nodiscard]] static Entry make(const void* pointer, Note note) {
    std::map<const void*, Note> only;
    only.emplace(pointer, std::move(note));
    return only.extract(only.begin());
  }
  // Empty if there is none.
  [[nodiscard]] Entry take(const void* pointer) noexcept {
    if (is_empty()) [[likely]] {
      return {};
    }
    auto& in = shard_of(pointer);
    const std::lock_guard hold{in.lock};
    auto taken = in.notes.extract(pointer);
    count_.fetch_sub(taken.empty() ? 0 : 1, std::memory_order_relaxed);
    return taken;
  }
  void put_back(Entry taken) noexcept {
    if (taken.empty()) {
      return;
    }
    auto& in = shard_of(taken.key());
    const std::lock_guard hold{in.lock};
    const bool inserted = in.notes.insert(std::move(taken)).inserted;
    count_.fetch_add(inserted ? 1 : 0, std::memory_order_relaxed);
  }
  [[nodiscard]] bool has(const void* pointer) noexcept {
    if (is_empty()) {
      return false;
    }
    auto& in = shard_of(pointer);
    const std::lock_guard hold{in.lock};
    return in.notes.contains(pointer);
  }
  // False if there is none.
  [[nodiscard]] bool copy(const void* pointer, Note& out) noexcept {
    if (is_empty()) {
      return false;
    }
    auto& in = shard_of(pointer);
    const std::lock_guard hold{in.lock};
    const auto found = in.notes.find(pointer);
    if (found == in.notes.end()) {
      return false;
    }
    out = found->second;
    return true;
  }
  // Calls see(note) for each, under its lock.
  template <class Visit>
  void visit(Visit&& see) {
    for (auto& in : shards_) {
      const std::lock_guard hold{in.lock};
      for (const auto& [pointer, note] : in.notes) {
        see(note);
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
