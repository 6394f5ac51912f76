#pragma once
// How a pool's memory is divided, counted at a moment: for the error of a request that failed, and
// for whoever asks.

#include <array>
#include <cstddef>

#include "core/status.hpp"

namespace isthmus {

// Blocks that were allocated under a tag, and are live.
struct holder {
  const char* tag = nullptr;  // null: under none
  std::size_t bytes = 0;      // as requested
  std::size_t count = 0;
};

// In bytes. What other threads do meanwhile may be seen in part.
struct snapshot {
  std::size_t held = 0;          // of the driver's
  std::size_t live = 0;          // callers have it; of an unchecked pool all of its slabs
  std::size_t live_blocks = 0;   // the number of blocks that these bytes are
  std::size_t cached = 0;        // by threads and in slabs, for the next caller
  std::size_t waiting = 0;       // free once the work that it was freed behind has ended
  std::size_t free = 0;          // for anybody
  std::size_t largest_free = 0;  // run of these
  // Where it was counted: the largest request of the calling thread, on the queue that it used the
  // pool on last, that is served without more memory of the driver's. Of free runs as they can be
  // joined or moved, of what this thread keeps, and of blocks in slabs and central lists; not of
  // what other threads keep, or of what waits for other queues.
  std::size_t largest_request = 0;
  // Who has most of what is live, as far as it is known (holders.hpp), the largest first.
  std::array<holder, ISTHMUS_MOST_HOLDERS> holders{};
  std::size_t holder_count = 0;

  // Which part of the free memory cannot serve one request: 0 if it lies in one piece.
  [[nodiscard]] double fragmentation() const noexcept {
    return free == 0 ? 0 : 1 - static_cast<double>(largest_free) / static_cast<double>(free);
  }
};

// A request that found no memory, and what its pool had.
struct shortage {
  snapshot seen;
  std::array<char, 64> device{};  // its filter: an error outlives devices, and keeps none
  isthmus_kind_t kind = ISTHMUS_KIND_UNKNOWN;
  std::size_t requested = 0;     // bytes
  std::uint32_t rungs = 0;       // that were tried: 1 << rung of each (pressure.hpp)
  const char* advice = nullptr;  // lives for ever
};

// For whoever asks on this thread before its next such failure.
void remember_shortage(const error& failure, const shortage& of) noexcept;
// Null if it is of none.
[[nodiscard]] const shortage* shortage_of(const error& failure) noexcept;

}  // namespace isthmus
