#pragma once
// The pools that memory comes from where the caller names no resource: one for each kind of memory
// of a device in a context, of all languages.
//
// Where memory of the driver's pools cannot be shared with other processes, because it moves, there
// are two: what moves holds less memory for the same blocks and serves arrays, and what does not
// serves buffers, whose memory other libraries may share (docs/pools.md).
//
// A pool stays while anything refers to it or while it holds memory. It returns memory that was not
// needed for `k_decay`, and then leaves the table.

#include <chrono>
#include <cstdint>
#include <vector>

#include "core/spin_lock.hpp"
#include "core/tls.hpp"
#include "memory/live_counts.hpp"
#include "memory/pool.hpp"

namespace isthmus {

// While one lives, buffers that the calling thread makes without a resource come from the driver:
// it is in a function of the program's that a resource calls for memory, and a pool may stand on
// that resource.
class driver_serves_thread {
 public:
  driver_serves_thread() noexcept { ++depth_; }
  driver_serves_thread(const driver_serves_thread&) = delete;
  driver_serves_thread& operator=(const driver_serves_thread&) = delete;
  ~driver_serves_thread() { --depth_; }
  [[nodiscard]] static bool is_on() noexcept { return depth_ != 0; }

 private:
  ISTHMUS_TLS_MODEL static inline thread_local constinit int depth_ = 0;
};

class default_pools {
 public:
  // Memory that nobody needed goes back between one and two such windows later. A program that
  // repeats its steps within one keeps all that it uses, and calls no driver for it.
  static constexpr std::chrono::nanoseconds k_decay = std::chrono::seconds{10};

  enum class use : std::uint8_t { buffers, arrays };

  // Never destroyed.
  [[nodiscard]] static default_pools& only();

  // Some ten nanoseconds where it is there. Else it is made: errors as `pool::create`, UNSUPPORTED
  // for a kind that the device lacks. Pre: not in a forked child. Throws std::bad_alloc.
  [[nodiscard]] result<ref<pool>> find(context& home, device& where, usm_kind kind, use by);
  // Drops those that hold no memory and that nobody refers to. Releases them, which may call a
  // driver: outside all locks.
  void drop_unused() noexcept;
  // Has all return to their drivers what they have free, and drops those that this leaves unused.
  // Bytes given back.
  std::size_t trim() noexcept;
  // Adds the blocks that callers have of default pools, of one kind or of all (UNKNOWN): the chunks
  // of these pools are not counted as live. Exact while no caller allocates or frees, even if a
  // pool returns memory meanwhile; some 30 ns for each 64 KiB of these pools.
  void count_blocks(live_total& of, usm_kind kind) noexcept;
  [[nodiscard]] std::size_t count() noexcept;  // of pools
  [[nodiscard]] bool has(const pool& one) noexcept;

 private:
  // A pool keeps its context, so that no other one gets the key.
  struct key {
    std::uintptr_t context_key;
    device* where;
    usm_kind kind;
    use by;
    bool operator==(const key&) const noexcept = default;
  };
  // A pool that serves both uses has an entry for each. Entries are in the order of their numbers,
  // which are never used again.
  struct entry {
    key of;
    ref<pool> which;
    std::uint64_t number;
  };
  // The pool of the first entry after number `last` that is not of an earlier entry, and its number
  // in `last`; null: none.
  [[nodiscard]] ref<pool> next(std::uint64_t& last) noexcept;
  // Outside the lock: each pool once that stays in the table meanwhile, whatever leaves it.
  template <class Visit>
  void for_each(Visit&& visit);
  // Pre: the lock is held.
  [[nodiscard]] bool is_second_entry(std::size_t at) const noexcept;
  // Null: none. Pre: the lock is held.
  [[nodiscard]] pool* known(const key& of) noexcept;
  [[nodiscard]] static result<ref<pool>> make(context& home, device& where, usm_kind kind, use by);
  // What is there for the key by then.
  [[nodiscard]] ref<pool> enter(const key& of, ref<pool> made);
  // Pre: the lock is held.
  [[nodiscard]] bool is_unused(pool& one) const noexcept;

  spin_lock lock_;
  std::vector<entry> entries_;
  std::uint64_t entered_ = 0;  // the last entry's number
};

}  // namespace isthmus
