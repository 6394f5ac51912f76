// SPDX-License-Identifier: Apache-2.0
#pragma once
// A source of movable memory. Address ranges are reserved separately from physical memory, which is
// created in chunks. A chunk can be moved to other addresses without copying its contents. CUDA
// calls this virtual memory management.

#include <cstddef>

#include "core/status.hpp"

namespace isthmus {

// Serves one kind of memory of one device. Thread-safe. All sizes and addresses are multiples of
// the granularity. New chunks, and the destinations of moves, lie in a reservation, at addresses
// where no chunk is mapped.
class ChunkSource {
 public:
  ChunkSource() = default;
  ChunkSource(const ChunkSource&) = delete;
  ChunkSource& operator=(const ChunkSource&) = delete;
  virtual ~ChunkSource() = default;

  [[nodiscard]] virtual std::size_t granularity() const noexcept = 0;  // bytes, a power of two
  // Whether part of a chunk can be moved and destroyed like a whole one. If so, the addresses
  // belong to the chunk that occupies them: `move` and `destroy` release the addresses that the
  // chunk occupied, and the caller of `reserve` releases only addresses at which it created no
  // chunk. The granularity is then 64 KiB.
  [[nodiscard]] virtual bool can_split() const noexcept { return false; }

  // Reserves addresses. Post: the result is aligned to `alignment` and to the granularity.
  // OUT_OF_MEMORY if no address range is available.
  [[nodiscard]] virtual Result<void*> reserve(std::size_t nbytes, std::size_t alignment) = 0;
  // The range holds no chunk. It is a whole reservation, unless the source `can_split`.
  virtual void release(void* base, std::size_t nbytes) noexcept = 0;

  // Creates a chunk. Errors: OUT_OF_MEMORY, DEVICE_LOST, DRIVER.
  [[nodiscard]] virtual Result<void> create(void* address, std::size_t nbytes) = 0;
  // Moves a chunk with its contents. On an error the chunk remains at `source`. If
  // `destination_lost` is true after an error, other code may own the addresses at `destination`:
  // they must not be used again and are never released. No operation uses the chunk, unless
  // the source `keeps_old_mapping`. Throws std::bad_alloc without any effect.
  [[nodiscard]] virtual Result<void> move(void* source, void* destination, std::size_t nbytes,
                                          bool& destination_lost) = 0;
  // Whether a moved chunk remains mapped at its old addresses too, for operations that still use it
  // there, until `unmap_old`.
  [[nodiscard]] virtual bool keeps_old_mapping() const noexcept { return false; }
  // Unmaps the old addresses of a moved chunk. No operation uses the chunk at these addresses
  // any more.
  virtual void unmap_old(void* /*source*/, std::size_t /*nbytes*/) noexcept {}
  // No operation uses the chunk.
  virtual void destroy(void* address, std::size_t nbytes) noexcept = 0;
};

}  // namespace isthmus
