// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory that can move. Address ranges are reserved separately from physical memory, which is
// created in chunks; a chunk can be moved to other addresses without a copy. CUDA calls this
// virtual memory management.

#include <cstddef>

#include "core/status.hpp"

namespace isthmus {

// One kind of memory of one device. Thread-safe. All sizes and addresses are multiples of the
// granularity. `address` and `destination` lie in a reservation, at addresses without a chunk.
class ChunkSource {
 public:
  ChunkSource() = default;
  ChunkSource(const ChunkSource&) = delete;
  ChunkSource& operator=(const ChunkSource&) = delete;
  virtual ~ChunkSource() = default;

  [[nodiscard]] virtual std::size_t granularity() const noexcept = 0;  // bytes, a power of two
  // Whether part of a chunk can be moved and destroyed like a whole one. If so, the addresses
  // belong to the chunk that occupies them: `move` and `destroy` release those that a chunk leaves,
  // and the caller of `reserve` releases only those at which it created no chunk. The granularity
  // is then 64 KiB.
  [[nodiscard]] virtual bool can_split() const noexcept { return false; }

  // Post: aligned to at least the granularity. OUT_OF_MEMORY if no addresses are left.
  [[nodiscard]] virtual Result<void*> reserve(std::size_t nbytes, std::size_t alignment) = 0;
  // Pre: the range holds no chunk. It is a whole reservation, unless the source `can_split`.
  virtual void release(void* base, std::size_t nbytes) noexcept = 0;

  // Creates a chunk. Errors: OUT_OF_MEMORY, DEVICE_LOST, DRIVER.
  [[nodiscard]] virtual Result<void> create(void* address, std::size_t nbytes) = 0;
  // Moves a chunk with its contents. On an error the chunk stays where it is. If `destination_lost`
  // is then true, other code may own the addresses at `destination`: they must not be used again
  // and are never released. Pre: nothing uses the chunk, unless the source `keeps_old_mapping`. May
  // throw std::bad_alloc, and then nothing was done.
  [[nodiscard]] virtual Result<void> move(void* source, void* destination, std::size_t nbytes,
                                          bool& destination_lost) = 0;
  // Whether a moved chunk remains mapped at its old addresses too, for operations that still use it
  // there, until `unmap_old`.
  [[nodiscard]] virtual bool keeps_old_mapping() const noexcept { return false; }
  // Unmaps the old addresses. Pre: a chunk moved from there, and nothing uses it there any more.
  virtual void unmap_old(void* /*from*/, std::size_t /*nbytes*/) noexcept {}
  // Pre: nothing uses the chunk.
  virtual void destroy(void* address, std::size_t nbytes) noexcept = 0;
};

}  // namespace isthmus
