#pragma once
// The registry of live allocations: any pointer, an inner one too, finds its record.
//
// Records lie in a hash table under (size class, address / size class) of their base, so that a
// look-up probes at most three cells a size class, whatever the number of records; shards keep
// threads apart, and tell without a lock of which classes they have none. Adding and removing: one
// lock of a few instructions, and no other line of the cache that threads share.

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "core/spin_lock.hpp"
#include "memory/allocation.hpp"

namespace isthmus {

class registry {
 public:
  // OUT_OF_MEMORY if the table cannot grow.
  void add(allocation& record);
  void remove(allocation& record) noexcept;
  // The same if that is true under the lock that everybody takes who finds it; whether it was.
  template <class Condition>
  bool remove_if(allocation& record, Condition&& is_wanted) noexcept;
  // The record whose [base, base + nbytes) holds `pointer`, none that lies within another; null if
  // none.
  [[nodiscard]] ref<allocation> find(const void* pointer) noexcept;
  // The same of what came from one resource, also where it lies within another.
  [[nodiscard]] ref<allocation> find(const void* pointer, const memory_resource& from) noexcept;
  // Whether one holds it that nobody refers to any more and whose memory has not gone back yet.
  [[nodiscard]] bool is_dying(const void* pointer) noexcept;
  // The same two of blocks of pools alone: what a pool's memory lies in may have a record too.
  [[nodiscard]] ref<allocation> find_block(const void* pointer) noexcept;
  [[nodiscard]] bool is_dying_block(const void* pointer) noexcept;

 private:
  struct key {
    unsigned size_class;
    std::uintptr_t cell;
  };
  static constexpr std::size_t k_classes = 64;
  struct alignas(64) shard {
    spin_lock lock;
    std::vector<allocation*> buckets;
    std::size_t count = 0;
    std::atomic<std::uint64_t> classes{0};  // of its records, a bit each; the lock's holder writes
    std::array<std::uint32_t, k_classes> in_class{};
  };
  [[nodiscard]] static key key_of(const allocation& record) noexcept;
  [[nodiscard]] static std::uint64_t hash(const key& where) noexcept;
  [[nodiscard]] static allocation*& bucket_of(shard& in, std::uint64_t hashed) noexcept;
  [[nodiscard]] shard& shard_of(std::uint64_t hashed) noexcept {
    return shards_[hashed >> (64 - k_shard_bits)];
  }
  static void grow(shard& crowded);
  // One record more, or less, of that class. Pre: under its lock.
  void count_up(shard& in, unsigned size_class) noexcept;
  static void count_down(shard& in, unsigned size_class) noexcept;
  static void take_out(shard& in, allocation& record) noexcept;
  // The first record that may hold the pointer for which `visit` is true, under its shard's lock.
  template <class Visit>
  bool visit_holders(const void* pointer, Visit&& visit) noexcept;
  // The first record that may hold the pointer, for which `fits` is true and which somebody holds.
  template <class Fits>
  ref<allocation> first_holder(const void* pointer, Fits&& fits) noexcept;

  static constexpr unsigned k_shard_bits = 6;
  std::array<shard, std::size_t{1} << k_shard_bits> shards_;
  std::atomic<std::uint64_t> ever_in_use_{0};  // size classes, a bit each
};

template <class Condition>
bool registry::remove_if(allocation& record, Condition&& is_wanted) noexcept {
  auto& mine = shard_of(record.hashed_);
  const std::lock_guard hold{mine.lock};
  const bool removed = is_wanted();
  if (removed) {
    take_out(mine, record);
  }
  return removed;
}

// Of the whole process; never destroyed.
[[nodiscard]] registry& process_registry() noexcept;

}  // namespace isthmus
