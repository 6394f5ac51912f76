// SPDX-License-Identifier: Apache-2.0
#pragma once
// The default pools: they serve requests without a resource, from every language. There is one for
// each context, device and memory kind. Thread-safe.
//
// Memory that a pool remaps cannot be shared with other processes. Where the driver supports both,
// there are two pools. The one that remaps holds less memory for the same blocks and serves arrays.
// The other one serves buffers, whose memory other libraries may share (docs/pools.md).
//
// A pool is in the table while it is referenced or holds memory. It returns memory that was unused
// for `k_decay` to the driver. A pool that holds no memory and is not referenced is removed.

#include <chrono>
#include <cstdint>
#include <vector>

#include "core/never_destroyed.hpp"
#include "core/spin_lock.hpp"
#include "core/thread_safety.hpp"
#include "memory/base/live_counts.hpp"
#include "memory/pool/pool.hpp"

namespace isthmus {

class DefaultPools {
 public:
  // Unused memory is returned between one and two such windows after its last use. A program that
  // repeats its steps within one window retains all that it uses, and makes no driver calls for it.
  static constexpr std::chrono::nanoseconds k_decay = std::chrono::seconds{10};

  enum class Use : std::uint8_t { buffers, arrays };

  // Never destroyed.
  [[nodiscard]] static DefaultPools& only();

  // Finds the pool, in about ten nanoseconds, or creates it. Fails as `Pool::create` does, and with
  // UNSUPPORTED for a kind that the device lacks. Not called in a forked child. Throws
  // std::bad_alloc.
  [[nodiscard]] Result<Ref<Pool>> find(Context& context, Device& device, UsmKind kind, Use use);
  // Drops the pools that hold no memory and have no other reference. Their release may call a
  // driver, so it happens outside all locks.
  void drop_unused() noexcept;
  // Makes all pools return their free memory to the drivers, and drops those that are then unused.
  // Returns the bytes returned.
  std::size_t trim() noexcept;
  // Adds the live blocks of the default pools to `total`, for one kind or for all (UNKNOWN). The
  // memory that these pools obtain is not counted as live elsewhere. Exact while no other thread
  // allocates or frees, even if a pool returns memory meanwhile. Takes about 30 ns for each 64 KiB
  // of these pools.
  void count_blocks(LiveTotal& total, UsmKind kind) noexcept;
  [[nodiscard]] std::size_t count() noexcept;  // number of pools
  [[nodiscard]] bool has(const MemoryResource& resource) noexcept;

 private:
  friend NeverDestroyed<DefaultPools>;
  DefaultPools() noexcept;

  // A pool keeps its context alive, so that no other context gets the key.
  struct Key {
    std::uintptr_t context_key;
    Device* device;
    UsmKind kind;
    Use use;
    bool operator==(const Key&) const noexcept = default;
  };
  // A pool that serves both uses has two entries. Entries are sorted by number; numbers are not
  // reused.
  struct Entry {
    Key key;
    Ref<Pool> pool;
    std::uint64_t number;
  };
  // The pool of the first entry numbered above `last`, skipping second entries of a pool; null if
  // there is none. Stores the number of that entry in `last`.
  [[nodiscard]] Ref<Pool> next(std::uint64_t& last) noexcept;
  // Visits each pool that is in the table throughout the call exactly once, even if other pools are
  // removed meanwhile. The lock is not held during a visit.
  template <class Visit>
  void for_each(Visit&& visit);
  [[nodiscard]] bool is_second_entry(std::size_t index) const noexcept ISTHMUS_REQUIRES(lock_);
  // Null if there is none.
  [[nodiscard]] Pool* find_entry(const Key& key) noexcept ISTHMUS_REQUIRES(lock_);
  [[nodiscard]] static Result<Ref<Pool>> create(Context& context, Device& device, UsmKind kind,
                                                Use use);
  // Adds the pool, unless another thread has added one for the key. Returns the pool in the table.
  [[nodiscard]] Ref<Pool> insert(const Key& key, Ref<Pool> pool);
  [[nodiscard]] bool is_unused(Pool& pool) const noexcept ISTHMUS_REQUIRES(lock_);

  SpinLock lock_;
  std::vector<Entry> entries_ ISTHMUS_GUARDED_BY(lock_);
  std::uint64_t last_number_ ISTHMUS_GUARDED_BY(lock_) = 0;  // the number of the last entry
};

}  // namespace isthmus
