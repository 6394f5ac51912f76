// SPDX-License-Identifier: Apache-2.0
#pragma once
// The registry of live allocations: maps any pointer, including one inside an allocation, to the
// allocation record. Thread-safe.
//
// The records are in a hash table; the key is (size class, address / size class) of their base. So
// a lookup probes two keys for each size class, whatever the number of records, and only size
// classes that occur near that address (`ClassHints`). The key of a block of a pool is its base,
// which the page map provides. The table is divided into shards, each with a lock, so that threads
// seldom contend.
//
// Queries that return a copy take no lock. Each entry has the record's address and a copy of the
// record's facts, in memory that the table never frees. A version number per shard lets a reader
// detect that the data were changing while it read them (a sequence lock: Boehm, "Can seqlocks get
// along with programming language memory models?", 2012; memory orders in registry_entry.hpp). Only
// a query that returns a reference to the record takes the shard's lock, for a few instructions.

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/expects.hpp"
#include "core/lock_guard.hpp"
#include "core/spin_lock.hpp"
#include "core/thread_safety.hpp"
#include "memory/records/class_hints.hpp"
#include "memory/records/registered_allocation.hpp"
#include "memory/records/registry_entry.hpp"

namespace isthmus {

class Registry {
 public:
  // Throws std::bad_alloc if the table cannot grow; then the record was not added.
  void add(RegisteredAllocation& record);
  void remove(RegisteredAllocation& record) noexcept;
  // Removes the record if `is_wanted()` is true under the lock that `find` takes as well; returns
  // whether it did.
  template <class Condition>
  bool remove_if(RegisteredAllocation& record, Condition&& is_wanted) noexcept;
  // Marks that no references to the record remain. The record remains in the table until its memory
  // has been released. `stays_with_owner`: the memory was adopted.
  static void mark_dying(RegisteredAllocation& record, bool stays_with_owner) noexcept;
  // Marks that other allocations lie in the record's memory from now on. The caller holds a
  // reference.
  static void mark_divided(RegisteredAllocation& record) noexcept;

  // The known facts of the allocation whose [base, base + nbytes) contains `pointer`. Ignores
  // allocations that lie within another one, and blocks of pools. A dying allocation is returned
  // only if there is no other. Takes no lock unless other threads keep changing the same shard.
  [[nodiscard]] std::optional<KnownMemory> lookup(const void* pointer) noexcept;
  // A reference to the record that `lookup` describes; null if there is none or it is dying.
  [[nodiscard]] Ref<RegisteredAllocation> find(const void* pointer) noexcept;
  // A reference to a record whose memory came from `resource`, including one that lies within
  // another.
  [[nodiscard]] Ref<RegisteredAllocation> find(const void* pointer,
                                               const MemoryResource& resource) noexcept;
  // Whether `pointer` lies in an allocation that has no references and whose memory has not been
  // released yet.
  [[nodiscard]] bool is_dying(const void* pointer) noexcept;
  // Whether `pointer` lies in memory of the library that the caller has freed and that has not been
  // released yet, and in no live allocation. False for adopted memory, which its owner may still
  // use. Takes no lock.
  [[nodiscard]] bool is_pending_release(const void* pointer) noexcept;
  // As `lookup`, `find` and `is_dying`, for a block of a pool. `base` is its base from the page
  // map. These are separate, since the memory that the pool lies in may have a record too.
  [[nodiscard]] std::optional<KnownMemory> lookup_block(const void* base) noexcept;
  [[nodiscard]] Ref<RegisteredAllocation> find_block(const void* base) noexcept;
  // The smallest allocation with a record that contains `pointer`, lies within another one and is
  // not divided into blocks. Takes locks.
  struct Part {
    Ref<RegisteredAllocation> held;  // null if it is dying
    KnownMemory known;
  };
  [[nodiscard]] std::optional<Part> innermost_part(const void* pointer) noexcept;
  [[nodiscard]] bool is_dying_block(const void* base) noexcept;

 private:
  struct Key {
    unsigned size_class;
    std::uintptr_t cell;
  };
  // The chains of a shard, 2^n of them: n and the address packed in one word, so that a reader gets
  // both of the same table.
  class Table {
   public:
    Table() noexcept = default;
    Table(RegistryChain* chains, unsigned count_bits) noexcept
        : word_{std::uint64_t{count_bits} << 48 | address(chains)} {}
    [[nodiscard]] std::size_t count() const noexcept {
      return word_ == 0 ? 0 : std::size_t{1} << (word_ >> 48);
    }
    [[nodiscard]] RegistryChain& operator[](std::size_t index) const noexcept {
      return reinterpret_cast<RegistryChain*>(word_ & (~std::uint64_t{0} >> 16))[index];
    }
    // The top bits of a hash choose the shard; this uses other bits.
    [[nodiscard]] RegistryChain& chain(std::uint64_t hashed) const noexcept {
      ISTHMUS_EXPECTS(count() != 0);
      return (*this)[(hashed >> 8) & ~(~std::uint64_t{0} << (word_ >> 48))];
    }

   private:
    std::uint64_t word_ = 0;
  };
  struct alignas(64) Shard {
    SpinLock lock;
    // Odd while an entry is being changed, under `lock`.
    std::atomic<std::uint32_t> version{0};
    std::atomic<Table> chains;
    RegistryEntry* spare ISTHMUS_GUARDED_BY(lock) = nullptr;
    std::size_t count ISTHMUS_GUARDED_BY(lock) = 0;
    // Former tables are retained: readers may still use them.
    std::vector<std::unique_ptr<RegistryChain[]>> tables ISTHMUS_GUARDED_BY(lock);
    std::vector<std::unique_ptr<RegistryEntry[]>> entries ISTHMUS_GUARDED_BY(lock);
  };
  class Change;

  static constexpr unsigned k_no_class = 64;
  [[nodiscard]] static Key key_of(const RegisteredAllocation& record) noexcept;
  [[nodiscard]] static Key key_of_block(const void* base) noexcept;
  [[nodiscard]] static std::uint64_t hash(const Key& key) noexcept;
  [[nodiscard]] Shard& shard_of(std::uint64_t hashed) noexcept {
    return shards_[hashed >> (64 - k_shard_bits)];
  }
  static void grow(Shard& shard) ISTHMUS_REQUIRES(shard.lock);
  static void make_entries(Shard& shard) ISTHMUS_REQUIRES(shard.lock);
  static void unlink(Shard& shard, RegisteredAllocation& record) noexcept
      ISTHMUS_REQUIRES(shard.lock);

  [[nodiscard]] static std::uint64_t hash_of_block(const void* base) noexcept {
    return hash(key_of_block(base));
  }
  // Calls visit(hashed) for each key that the pointer's record may have, until it returns true.
  template <class Visit>
  bool visit_hashes(const void* pointer, Visit&& visit) noexcept;
  struct Query {
    std::uint64_t hashed;
    const void* pointer;
    bool is_block;
  };
  [[nodiscard]] static const RegistryEntry* walk(const Shard& shard, const Query& query,
                                                 std::uint32_t version) noexcept;
  [[nodiscard]] bool read(const Query& query, KnownMemory& out) noexcept;
  // Calls `visit`, under the shard's lock, for the records of that key that contain the pointer,
  // until it returns true; returns whether it did.
  template <class Visit>
  bool visit_holders(std::uint64_t hashed, const void* pointer, Visit&& visit) noexcept;
  // A reference to the first such record that satisfies `fits` and is not dying.
  template <class Fits>
  Ref<RegisteredAllocation> holder(std::uint64_t hashed, const void* pointer, Fits&& fits) noexcept;

  static constexpr unsigned k_shard_bits = 6;
  std::array<Shard, std::size_t{1} << k_shard_bits> shards_;
  ClassHints hints_;
};

template <class Condition>
bool Registry::remove_if(RegisteredAllocation& record, Condition&& is_wanted) noexcept {
  auto& shard = shard_of(record.hashed_);
  const LockGuard hold{shard.lock};
  const bool removed = is_wanted();
  if (removed) {
    unlink(shard, record);
  }
  return removed;
}

// The registry of the process; never destroyed.
[[nodiscard]] Registry& process_registry() noexcept;

}  // namespace isthmus
