// SPDX-License-Identifier: Apache-2.0
#pragma once
// Cuts blocks off chunks one after the other, and releases all chunks together. When memory is
// short it also releases chunks of which every block was freed.
//
// Use it for memory that is allocated in small amounts and freed all at once: by a batch, a
// request, a parse. A block costs a lock of a few instructions and 24 bytes of host memory, its
// free two searches. Chunks double in size, so there are few of them.

#include <vector>

#include "core/spin_lock.hpp"
#include "memory/adaptors/cutting_resource.hpp"

namespace isthmus {

class MonotonicResource final : public CuttingResource {
 public:
  static constexpr std::size_t k_default_bytes = std::size_t{64} << 10;

  // Pre: `check_upstream` succeeded; first_bytes > 0.
  MonotonicResource(MemoryResource& upstream, std::size_t first_bytes)
      : CuttingResource{upstream}, first_bytes_{first_bytes}, next_bytes_{first_bytes} {}

  // A failed request changes nothing.
  [[nodiscard]] Result<void*> allocate(std::size_t nbytes, std::size_t alignment,
                                       Queue& queue) override;
  [[nodiscard]] void* allocate_fast(std::size_t nbytes, std::size_t alignment,
                                    Queue* queue) noexcept override;
  // Releases no memory, but the block is not live from here on. INVALID_ARGUMENT if `pointer` is no
  // block, lies inside one, or was freed before.
  Result<void> deallocate(void* pointer, std::size_t nbytes, Queue* after) noexcept override;
  [[nodiscard]] CutBlock block_at(const void* pointer) noexcept override;

  [[nodiscard]] bool may_release_early() const noexcept override { return true; }
  // Releases all chunks, ordered after everything that is on the queues of their blocks.
  void release_all() noexcept;
  // Releases the chunks without a live block, if all work on the queues of all blocks has ended.
  std::size_t release_unused() noexcept override;
  [[nodiscard]] std::vector<Ref<Event>> running() override;

 private:
  // In a piece, sorted by address.
  struct Block {
    std::size_t begin;  // offset from the piece's base
    std::size_t nbytes;
    bool live;
  };
  struct Piece {
    Chunk memory;
    // The work that upstream ordered it after, on the queue that it was allocated for; null: none.
    Ref<Event> until;
    const Queue* queue = nullptr;
    std::size_t used_bytes = 0;
    std::vector<Block> blocks = {};
  };

  ~MonotonicResource() override { release_all(); }
  void release_now() noexcept override { delete this; }
  // Pre, of these: `lock_` is held. Null if there is no space that is usable by the queue. Throws
  // std::bad_alloc, without effect.
  [[nodiscard]] void* try_allocate(std::size_t nbytes, std::size_t alignment, const Queue& queue);
  [[nodiscard]] static void* allocate_from(Piece& source, std::size_t nbytes,
                                           std::size_t alignment);
  // Null if no piece, or no block, contains the address.
  struct Place {
    Piece* piece = nullptr;
    Block* block = nullptr;
  };
  [[nodiscard]] Place find_block(const void* pointer) noexcept;
  [[nodiscard]] static bool is_in_use(const Piece& piece) noexcept;
  // A copy of the state that `release_unused` checks without the lock.
  struct QueueSnapshot {
    std::vector<Ref<Queue>> all;
    std::uint64_t changes;
  };
  [[nodiscard]] QueueSnapshot snapshot_queues();
  // Ends the block that begins at `pointer`. INVALID_ARGUMENT if there is none, or it was freed
  // before.
  [[nodiscard]] Result<void> end_block(const void* pointer) noexcept;
  void add_queue(Queue& queue);
  [[nodiscard]] bool try_add_queue(Queue& queue) noexcept;
  [[nodiscard]] bool has_queue(const Queue& queue) const noexcept;

  const std::size_t first_bytes_;
  SpinLock lock_;
  std::vector<Piece> chunks_;  // blocks are cut from the last usable one
  std::size_t next_bytes_;
  std::uint64_t changes_ = 0;       // blocks cut and freed so far, and `release_all`
  std::vector<Ref<Queue>> queues_;  // on which blocks were allocated or freed
};

}  // namespace isthmus
