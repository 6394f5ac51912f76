// SPDX-License-Identifier: Apache-2.0
#pragma once
// A resource that allocates blocks one after the other from chunks, and releases all chunks
// together. When memory is short, it also releases chunks whose blocks were all freed.
//
// Use it for memory that is allocated in small amounts and freed all at once, for example by a
// batch, a request or a parser. An allocation holds a lock for a few instructions and takes 24
// bytes of host memory; a free takes two searches. Chunks double in size, so there are few of them.

#include <vector>

#include "core/expects.hpp"
#include "core/spin_lock.hpp"
#include "core/thread_safety.hpp"
#include "memory/resources/suballocating_resource.hpp"

namespace isthmus {

class MonotonicResource final : public SuballocatingResource {
 public:
  static constexpr std::size_t k_default_bytes = std::size_t{64} << 10;

  // Call `check_upstream` first.
  MonotonicResource(MemoryResource& upstream, std::size_t first_bytes)
      : SuballocatingResource{upstream}, first_bytes_{first_bytes}, next_bytes_{first_bytes} {
    ISTHMUS_EXPECTS(first_bytes > 0);
  }

  // A failed request changes nothing.
  [[nodiscard]] Result<void*> allocate(std::size_t nbytes, std::size_t alignment,
                                       Queue& queue) override;
  [[nodiscard]] void* allocate_fast(std::size_t nbytes, std::size_t alignment,
                                    Queue* queue) noexcept override;
  // Marks the block as freed, but releases no memory. INVALID_ARGUMENT if `pointer` is not a block
  // of this resource, lies inside one, or was freed before.
  Result<void> deallocate(void* pointer, std::size_t nbytes, Queue* after) noexcept override;
  [[nodiscard]] CutBlock block_at(const void* pointer) noexcept override;

  [[nodiscard]] bool may_release_early() const noexcept override { return true; }
  // Releases all chunks, ordered after all work that is now on the queues of their blocks.
  void release_all() noexcept;
  // Releases the chunks without a live block, if all work on the queues of all blocks has ended.
  std::size_t release_unused() noexcept override;
  [[nodiscard]] std::vector<Ref<Event>> running() override;

 private:
  // A block of a chunk. The blocks of a chunk are sorted by address.
  struct Block {
    std::size_t begin;  // offset from the chunk's base
    std::size_t nbytes;
    bool live;
  };
  struct Chunk {
    CutChunk memory;
    // The earlier work on `queue` after which the chunk may be used; null: none.
    Ref<Event> until;
    const Queue* queue = nullptr;  // the queue that the chunk was allocated on
    std::size_t used_bytes = 0;
    std::vector<Block> blocks = {};
  };

  ~MonotonicResource() override { release_all(); }
  void release_now() noexcept override { delete this; }
  // Null if there is no space that is usable by the queue. Throws std::bad_alloc, without effect.
  [[nodiscard]] void* try_allocate(std::size_t nbytes, std::size_t alignment, const Queue& queue)
      ISTHMUS_REQUIRES(lock_);
  [[nodiscard]] static void* allocate_from(Chunk& source, std::size_t nbytes,
                                           std::size_t alignment);
  // The members are null if no chunk, or no block, contains the address.
  struct BlockPosition {
    Chunk* chunk = nullptr;
    Block* block = nullptr;
  };
  [[nodiscard]] BlockPosition find_block(const void* pointer) noexcept ISTHMUS_REQUIRES(lock_);
  [[nodiscard]] static bool is_in_use(const Chunk& chunk) noexcept;
  // A copy of the state that `release_unused` checks without the lock.
  struct QueueSnapshot {
    std::vector<Ref<Queue>> all;
    std::uint64_t changes;
  };
  [[nodiscard]] QueueSnapshot snapshot_queues();
  // Marks the block that begins at `pointer` as freed. INVALID_ARGUMENT if there is none, or it was
  // freed before.
  [[nodiscard]] Result<void> end_block(const void* pointer) noexcept ISTHMUS_REQUIRES(lock_);
  void add_queue(Queue& queue) ISTHMUS_REQUIRES(lock_);
  [[nodiscard]] bool try_add_queue(Queue& queue) noexcept ISTHMUS_REQUIRES(lock_);
  [[nodiscard]] bool has_queue(const Queue& queue) const noexcept ISTHMUS_REQUIRES(lock_);

  const std::size_t first_bytes_;
  SpinLock lock_;
  // New blocks are allocated from the last usable one.
  std::vector<Chunk> chunks_ ISTHMUS_GUARDED_BY(lock_);
  std::size_t next_bytes_ ISTHMUS_GUARDED_BY(lock_);
  // Allocations, frees and releases so far.
  std::uint64_t changes_ ISTHMUS_GUARDED_BY(lock_) = 0;
  // On which blocks were allocated or freed.
  std::vector<Ref<Queue>> queues_ ISTHMUS_GUARDED_BY(lock_);
};

}  // namespace isthmus
