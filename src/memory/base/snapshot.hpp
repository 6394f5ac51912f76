// SPDX-License-Identifier: Apache-2.0
#pragma once
// The use of a pool's memory at one moment: for the error of a request that failed, and for
// queries.

#include <array>
#include <cstddef>

#include "core/status.hpp"

namespace isthmus {

// The live blocks that were allocated under one tag.
struct Holder {
  const char* tag = nullptr;  // null: without a tag
  std::size_t bytes = 0;      // as requested
  std::size_t count = 0;
};

// In bytes. Concurrent changes by other threads may be seen in part.
struct Snapshot {
  std::size_t held = 0;          // obtained from the driver
  std::size_t live = 0;          // held by callers; all slabs, if unchecked
  std::size_t live_blocks = 0;   // the number of blocks in `live`
  std::size_t cached = 0;        // in thread caches and slabs, for reuse
  std::size_t waiting = 0;       // free once the work on its queue has ended
  std::size_t free = 0;          // usable by any queue
  std::size_t largest_free = 0;  // longest run of free pages
  // If counted: the largest request that the calling thread, on the queue that it last used the
  // pool on, could make without more memory from the driver. Includes free runs as they can be
  // joined or moved, memory that this thread caches, and blocks in slabs and central lists.
  // Excludes memory that other threads cache or that waits for other queues.
  std::size_t largest_request = 0;
  // The tags with the most live bytes, as far as is known (holders.hpp), the largest first.
  std::array<Holder, ISTHMUS_MAX_HOLDERS> holders{};
  std::size_t holder_count = 0;

  // The share of the free memory that cannot serve one request: 0 if it lies in one piece.
  [[nodiscard]] double fragmentation() const noexcept {
    return free == 0 ? 0 : 1 - static_cast<double>(largest_free) / static_cast<double>(free);
  }
};

// A request that failed for lack of memory, and the state of its pool.
struct Shortage {
  Snapshot snapshot;
  // The device's filter string, copied: an error outlives devices and keeps none alive.
  std::array<char, 64> device{};
  isthmus_kind_t kind = ISTHMUS_KIND_UNKNOWN;
  std::size_t requested = 0;     // bytes
  std::uint32_t stages = 0;      // stages tried: 1 << OomStage (oom_stages.hpp)
  const char* advice = nullptr;  // never freed
};

// Stores the shortage for `shortage_of` on this thread, until the next such failure on this thread.
void remember_shortage(const Error& failure, const Shortage& shortage) noexcept;
// The stored shortage; null if it belongs to another failure than `failure`.
[[nodiscard]] const Shortage* shortage_of(const Error& failure) noexcept;

}  // namespace isthmus
