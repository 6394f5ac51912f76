#pragma once
// The registry of live allocations: any pointer, an inner one too, finds its record.
//
// Records lie in a hash table under (size class, address / size class) of their base, so that a
// look-up probes at most three cells a size class in use, whatever the number of records; shards
// keep threads apart. Adding and removing: one lock of a few instructions, about 20 ns.

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "core/spin_lock.hpp"
#include "memory/allocation.hpp"

namespace isthmus {

class registry {
 public:
  // OUT_OF_MEMORY if the table cannot grow.
  void add(allocation& record);
  void remove(allocation& record) noexcept;
  // The record whose [base, base + nbytes) holds `pointer`, none that lies within another; null if
  // none.
  [[nodiscard]] ref<allocation> find(const void* pointer) noexcept;
  // The same of what came from one resource, also where it lies within another.
  [[nodiscard]] ref<allocation> find(const void* pointer, const memory_resource& from) noexcept;
  // Whether one holds it that nobody refers to any more and whose memory has not gone back yet.
  [[nodiscard]] bool is_dying(const void* pointer) noexcept;

 private:
  struct key {
    unsigned size_class;
    std::uintptr_t cell;
  };
  struct alignas(64) shard {
    spin_lock lock;
    std::vector<allocation*> buckets;
    std::size_t count = 0;
  };
  [[nodiscard]] static key key_of(const allocation& record) noexcept;
  [[nodiscard]] static std::uint64_t hash(const key& where) noexcept;
  [[nodiscard]] static allocation*& bucket_of(shard& in, std::uint64_t hashed) noexcept;
  [[nodiscard]] shard& shard_of(std::uint64_t hashed) noexcept {
    return shards_[hashed >> (64 - k_shard_bits)];
  }
  static void grow(shard& crowded);
  // The first record that may hold the pointer for which `visit` is true, under its shard's lock.
  template <class Visit>
  bool visit_holders(const void* pointer, Visit&& visit) noexcept;
  // The first record that may hold the pointer, for which `fits` is true and which somebody holds.
  template <class Fits>
  ref<allocation> first_holder(const void* pointer, Fits&& fits) noexcept;

  static constexpr unsigned k_shard_bits = 6;
  static constexpr std::size_t k_classes = 64;
  std::array<shard, std::size_t{1} << k_shard_bits> shards_;
  std::array<std::atomic<std::uint64_t>, k_classes> in_class_{};
};

// Of the whole process; never destroyed.
[[nodiscard]] registry& process_registry() noexcept;

}  // namespace isthmus
