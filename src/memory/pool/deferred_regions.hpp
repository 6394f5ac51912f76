// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory that was removed from a region heap while work still used it: chunks that return to the
// driver, and the old mappings of chunks that moved. Each is released once its work has ended.
//
// A moved chunk also remains mapped at its old address until nothing uses it there. The driver
// frees its memory only when that mapping is released, so chunks wait for their old mappings.

#include <atomic>
#include <cstddef>
#include <vector>

#include "memory/pool/queue_fences.hpp"
#include "memory/pool/region_source.hpp"

namespace isthmus {

// Guarded by the pool's growth turn (growth_turns.hpp), except `bytes`. Calls the driver. Where
// regions cannot move it is always empty, so that `has_old_mapping` may be called without a turn.
class DeferredRegions {
 public:
  // The arguments must outlive the object.
  DeferredRegions(RegionSource& source, const QueueFences& fences) noexcept
      : source_{source}, fences_{fences} {}
  // Releases everything. The caller ensures that nothing in it is in use.
  ~DeferredRegions();
  DeferredRegions(const DeferredRegions&) = delete;
  DeferredRegions& operator=(const DeferredRegions&) = delete;

  // Makes room for `count` more entries. Throws std::bad_alloc.
  void reserve(std::size_t count) { entries_.reserve(entries_.size() + count); }
  // Release a chunk, or the old mapping of one, when `until` has passed and the chunk has no old
  // mapping: at once if possible. Called after `reserve`.
  void drop(const Region& chunk, Ticket until) noexcept { drop({chunk, until, false}); }
  void drop_old_mapping(const Region& old, Ticket until) noexcept { drop({old, until, true}); }
  // Releases what nothing uses any more. Returns the bytes released to the driver.
  std::size_t release_ended() noexcept;
  // Whether the chunk is still mapped at an address that it moved from.
  [[nodiscard]] bool has_old_mapping(const Region& chunk) const noexcept;
  // Bytes of the chunks in it. No request can use them, not even on the queue of their work. May be
  // called by any thread.
  [[nodiscard]] std::size_t bytes() const noexcept {
    return bytes_.load(std::memory_order_relaxed);
  }

 private:
  struct Entry {
    Region region;
    Ticket until;
    bool is_old_mapping;

    // The memory that returns to the driver with it.
    [[nodiscard]] std::size_t bytes() const noexcept {
      return is_old_mapping ? 0 : region.driver_bytes;
    }
  };
  void drop(const Entry& entry) noexcept;
  [[nodiscard]] bool is_releasable(const Entry& entry) const noexcept;
  void release_now(const Entry& entry) noexcept;
  void release_ended(bool are_old_mappings) noexcept;

  RegionSource& source_;
  const QueueFences& fences_;
  std::vector<Entry> entries_;
  std::atomic<std::size_t> bytes_{0};
};

}  // namespace isthmus
