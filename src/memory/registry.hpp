#pragma once
// The registry of live allocations: any pointer, an inner one too, finds its record.
//
// Records lie in a hash table under (size class, address / size class) of their base, so that a
// look-up probes two places a size class, whatever the number of records, and only those of the
// classes that there are about that address. Blocks of pools, whose bases the page map tells, lie
// under these. Shards keep threads apart. What is told of a pointer
// is told without a lock: beside each record's address its place in the table has what it says, in
// memory that stays the table's own, and a shard's version tells a reader whether what he read was
// whole (a sequence lock: Boehm, "Can seqlocks get along with programming language memory models?",
// 2012). Only who wants to hold the record takes the shard's lock, for a few instructions.

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "core/spin_lock.hpp"
#include "memory/allocation.hpp"
#include "memory/class_hints.hpp"
#include "memory/registry_entry.hpp"

namespace isthmus {

class registry {
 public:
  // OUT_OF_MEMORY if the table cannot grow.
  void add(allocation& record);
  void remove(allocation& record) noexcept;
  // The same if that is true under the lock that everybody takes who finds it; whether it was.
  template <class Condition>
  bool remove_if(allocation& record, Condition&& is_wanted) noexcept;
  // Nobody refers to it any more; it stays in the table.
  static void mark_dying(allocation& record) noexcept;
  // Other allocations lie in it from here on. Pre: the caller refers to it.
  static void mark_divided(allocation& record) noexcept;

  // Of the record whose [base, base + nbytes) holds `pointer`, none that lies within another and no
  // pool's block; of a dying one where there is no other. Takes no lock but where others change the
  // same shard again and again meanwhile.
  [[nodiscard]] std::optional<known_memory> look(const void* pointer) noexcept;
  // That record; null if none, or if it is dying.
  [[nodiscard]] ref<allocation> find(const void* pointer) noexcept;
  // Of any that came from one resource, also where it lies within another.
  [[nodiscard]] ref<allocation> find(const void* pointer, const memory_resource& from) noexcept;
  // Whether one holds it that nobody refers to any more and whose memory has not gone back yet.
  [[nodiscard]] bool is_dying(const void* pointer) noexcept;
  // Whether that is memory of the library's, and no live allocation holds the pointer: the caller
  // has freed it. Memory that was adopted stays with its owner, who may use it. Takes no lock.
  [[nodiscard]] bool is_returning(const void* pointer) noexcept;
  // The same of a pool's block, by its base, which the page map tells: what the pool's memory lies
  // in may have a record too.
  [[nodiscard]] std::optional<known_memory> look_block(const void* base) noexcept;
  [[nodiscard]] ref<allocation> find_block(const void* base) noexcept;
  // Of the smallest allocation with a record that holds `pointer`, lies within another and is not
  // cut into blocks. Takes locks.
  struct part {
    ref<allocation> held;  // null where it is dying
    known_memory known;
  };
  [[nodiscard]] std::optional<part> innermost_part(const void* pointer) noexcept;
  [[nodiscard]] bool is_dying_block(const void* base) noexcept;

 private:
  struct key {
    unsigned size_class;
    std::uintptr_t cell;
  };
  // A shard's chains, as many as a power of two: one word, so that it is read as a whole.
  class table {
   public:
    table() noexcept = default;
    table(registry_chain* chains, unsigned count_bits) noexcept
        : word_{std::uint64_t{count_bits} << 48 | address(chains)} {}
    [[nodiscard]] std::size_t count() const noexcept {
      return word_ == 0 ? 0 : std::size_t{1} << (word_ >> 48);
    }
    [[nodiscard]] registry_chain& operator[](std::size_t index) const noexcept {
      return reinterpret_cast<registry_chain*>(word_ & (~std::uint64_t{0} >> 16))[index];
    }
    // The top bits of a hash chose the shard; these are others. Pre: there are any.
    [[nodiscard]] registry_chain& chain(std::uint64_t hashed) const noexcept {
      return (*this)[(hashed >> 8) & ~(~std::uint64_t{0} << (word_ >> 48))];
    }

   private:
    std::uint64_t word_ = 0;
  };
  struct alignas(64) shard {
    spin_lock lock;
    std::atomic<std::uint32_t> version{0};  // odd while an entry is changed, under the lock
    std::atomic<table> chains;
    registry_entry* spare = nullptr;
    std::size_t count = 0;
    std::vector<std::unique_ptr<registry_chain[]>> tables;  // readers may be in former ones too
    std::vector<std::unique_ptr<registry_entry[]>> entries;
  };
  class change;

  static constexpr unsigned k_no_class = 64;
  [[nodiscard]] static key key_of(const allocation& record) noexcept;
  [[nodiscard]] static key key_of_block(const void* base) noexcept;
  [[nodiscard]] static std::uint64_t hash(const key& where) noexcept;
  [[nodiscard]] shard& shard_of(std::uint64_t hashed) noexcept {
    return shards_[hashed >> (64 - k_shard_bits)];
  }
  // These pre: under its lock.
  static void grow(shard& crowded);
  static void make_entries(shard& in);
  static void take_out(shard& in, allocation& record) noexcept;

  [[nodiscard]] static std::uint64_t place_of_block(const void* base) noexcept {
    return hash(key_of_block(base));
  }
  // visit(hashed) for each place that the pointer's record may be at, until one says true.
  template <class Visit>
  bool visit_places(const void* pointer, Visit&& visit) noexcept;
  struct sought {
    std::uint64_t hashed;
    const void* pointer;
    bool is_block;
  };
  [[nodiscard]] static const registry_entry* walk(const shard& in, const sought& what,
                                                  std::uint32_t version) noexcept;
  [[nodiscard]] bool read(const sought& what, known_memory& out) noexcept;
  // The first record there that holds the pointer and for which `visit` is true, under the lock.
  template <class Visit>
  bool visit_holders(std::uint64_t hashed, const void* pointer, Visit&& visit) noexcept;
  // The same for which `fits` is true and which somebody holds.
  template <class Fits>
  ref<allocation> holder(std::uint64_t hashed, const void* pointer, Fits&& fits) noexcept;

  static constexpr unsigned k_shard_bits = 6;
  std::array<shard, std::size_t{1} << k_shard_bits> shards_;
  class_hints hints_;
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
