#pragma once
// Memory that can move: addresses are reserved apart from the memory behind them, which comes in
// chunks, and a chunk can be taken to other addresses without a copy. CUDA calls this virtual
// memory management.

#include <cstddef>

#include "core/status.hpp"

namespace isthmus {

// One kind of memory of one device. Safe for threads. All sizes and addresses are multiples of the
// granularity; `at` and `to` lie in a reservation, where no chunk is.
class chunk_source {
 public:
  chunk_source() = default;
  chunk_source(const chunk_source&) = delete;
  chunk_source& operator=(const chunk_source&) = delete;
  virtual ~chunk_source() = default;

  [[nodiscard]] virtual std::size_t granularity() const noexcept = 0;  // bytes, a power of two
  // Whether a part of a chunk moves and goes like a whole one, and addresses belong to what lies
  // there: `move` and `destroy` let go of those that a chunk leaves, and who reserved releases
  // those where he put none. Then the granularity is 64 KiB.
  [[nodiscard]] virtual bool divides() const noexcept { return false; }

  // Post: aligned, to the granularity at least. OUT_OF_MEMORY without addresses.
  [[nodiscard]] virtual result<void*> reserve(std::size_t nbytes, std::size_t alignment) = 0;
  // Pre: no chunk is in it; what was reserved, as a whole, unless it divides.
  virtual void release(void* base, std::size_t nbytes) noexcept = 0;

  // A new chunk. Errors: OUT_OF_MEMORY, DEVICE_LOST, DRIVER.
  [[nodiscard]] virtual result<void> create(void* at, std::size_t nbytes) = 0;
  // A chunk, and what is in it. In an error it stays where it is; if `to_lost` is true then, the
  // addresses may be somebody else's by now: nothing may come there, and they are never released.
  // Pre: nothing uses it, unless it `stays_behind`. May throw std::bad_alloc, and then nothing was
  // done.
  [[nodiscard]] virtual result<void> move(void* from, void* to, std::size_t nbytes,
                                          bool& to_lost) = 0;
  // Whether a chunk that moved is at its old place too, for what still uses it there, till `leave`.
  [[nodiscard]] virtual bool stays_behind() const noexcept { return false; }
  // Pre: a chunk moved from there, and nothing uses it there any more.
  virtual void leave(void* /*from*/, std::size_t /*nbytes*/) noexcept {}
  // Pre: nothing uses it.
  virtual void destroy(void* at, std::size_t nbytes) noexcept = 0;
};

}  // namespace isthmus
