#pragma once
// The run heap of a pool over regions that it gets from the driver, and their entry in the page
// map.

#include <cstddef>
#include <mutex>
#include <vector>

#include "core/spin_lock.hpp"
#include "memory/grain_table.hpp"
#include "memory/memory_resource.hpp"
#include "memory/page_map.hpp"
#include "memory/run_heap.hpp"

namespace isthmus {

// Safe for threads. The driver is called outside the lock; giving a run back never calls it.
class region_heap {
 public:
  using index = run_heap::index;
  struct run {
    std::byte* base = nullptr;
    index first = run_heap::k_none;
    index count = 0;
    ticket until;  // what still is on it
  };

  struct sizes {
    std::size_t growth_bytes;  // asked of the driver at a time, at least
    std::size_t limit_bytes;   // of the driver's, never more
  };

  region_heap(context& home, device& where, usm_kind kind, const sizes& how,
              queue_slots& slots) noexcept
      : home_{home}, where_{where}, kind_{kind}, how_{how}, slots_{slots} {}
  // All regions go back. Pre: nothing in them is in use.
  ~region_heap();
  region_heap(const region_heap&) = delete;
  region_heap& operator=(const region_heap&) = delete;

  // Before anything else. OUT_OF_MEMORY where the host has no address space for the table.
  [[nodiscard]] result<void> open();

  // Of memory at hand that is good for the queue in slot `whom`; count 0 if none is long enough.
  // `alignment` in bytes, a power of two.
  [[nodiscard]] run take(index count, std::size_t alignment, queue_slots::slot whom) noexcept;
  // Joins neighbours that waited for different queues and wait no more.
  void settle() noexcept;
  // A region more, in which such a run fits. OUT_OF_MEMORY beyond the limit; errors as the
  // driver's.
  [[nodiscard]] result<void> grow(index count, std::size_t alignment);
  // The same, of at least so many bytes.
  [[nodiscard]] result<void> grow_by(std::size_t nbytes);
  void give(index first, ticket freed) noexcept;
  // Gives regions that are free as a whole back to the driver while more than `keep` bytes are
  // held; bytes given back.
  std::size_t trim(std::size_t keep) noexcept;

  [[nodiscard]] bool is_open() const noexcept { return table_ != nullptr; }
  [[nodiscard]] grain_table& table() const noexcept { return *table_; }
  // Whether a record that the page map gave is of this heap, and not of another pool's.
  [[nodiscard]] bool has(const grain* record) const noexcept {
    return &grain_table::of(record) == table_;
  }
  [[nodiscard]] std::size_t held_bytes() const noexcept {
    return held_.load(std::memory_order_relaxed);
  }
  // Regions that the driver gave so far, and that it got back.
  [[nodiscard]] std::uint64_t maps() const noexcept {
    return maps_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t unmaps() const noexcept {
    return unmaps_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::size_t free_bytes() noexcept;

 private:
  struct region {
    void* from_driver;
    std::size_t driver_bytes;
    std::byte* base;
    index first;
    index count;
  };

  [[nodiscard]] bool claim(std::size_t nbytes) noexcept;
  [[nodiscard]] error beyond_limit(std::size_t nbytes) const;
  [[nodiscard]] result<region> ask_driver(std::size_t nbytes);
  [[nodiscard]] result<void> enter(region made);
  [[nodiscard]] index find_numbers(index count) noexcept;
  [[nodiscard]] bool take_out(std::size_t keep, region& out) noexcept;
  void give_back(const region& gone) noexcept;
  [[nodiscard]] std::byte* address_of(index first) const noexcept;

  context& home_;
  device& where_;
  const usm_kind kind_;
  const sizes how_;
  queue_slots& slots_;
  grain_table* table_ = nullptr;
  std::atomic<std::size_t> held_{0};
  std::atomic<std::uint64_t> maps_{0};
  std::atomic<std::uint64_t> unmaps_{0};
  mutable spin_lock lock_;
  run_heap runs_{nullptr, nullptr, slots_};
  std::vector<region> regions_;  // by their first grain
};

}  // namespace isthmus
