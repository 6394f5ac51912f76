// SPDX-License-Identifier: Apache-2.0
#pragma once
// Blocks of any size, cut from superblocks that threads do not share.
//
// Use it if memory that different threads free must stay separate, or over an upstream that no pool
// can use. A pool is nearly always faster. A pair of a thread and a queue uses one of a fixed
// number of arenas (arena.hpp), so that nothing remains when a thread or queue ends. If an arena
// has no suitable block it gets a new superblock. Superblocks that are unused in other arenas are
// released only if upstream, or the limit, has no more. A free finds the arena of its block among
// the superblocks by address; it takes two locks, neither of which is held during a call of
// upstream.

#include <array>
#include <atomic>
#include <map>
#include <shared_mutex>
#include <utility>

#include "memory/adaptors/arena.hpp"
#include "memory/adaptors/keeping_resource.hpp"

namespace isthmus {

class ArenaResource final : public KeepingResource {
 public:
  // Pre: `check_upstream` succeeded. All superblocks together have at most `limit_bytes`.
  ArenaResource(MemoryResource& upstream, std::uint64_t limit_bytes)
      : KeepingResource{upstream}, limit_{limit_bytes} {}

  static constexpr std::size_t k_arenas = 64;
  static constexpr std::size_t k_superblock_bytes = std::size_t{1} << 20;

  [[nodiscard]] Result<void*> allocate(std::size_t nbytes, std::size_t alignment,
                                       Queue& queue) override;
  // INVALID_ARGUMENT if `pointer` is no block, lies inside one, or was freed before.
  Result<void> deallocate(void* pointer, std::size_t nbytes, Queue* after) noexcept override;
  [[nodiscard]] CutBlock block_at(const void* pointer) noexcept override;

 private:
  // The bytes of the limit that one superblock uses.
  class Share {
   public:
    // Empty if less than `nbytes` is left.
    Share(std::atomic<std::uint64_t>& held, std::uint64_t nbytes, std::uint64_t limit) noexcept;
    Share(Share&& other) noexcept : held_{other.held_}, nbytes_{std::exchange(other.nbytes_, 0)} {}
    Share& operator=(Share other) noexcept {
      std::swap(nbytes_, other.nbytes_);  // of the same resource
      return *this;
    }
    ~Share() { held_.fetch_sub(nbytes_, std::memory_order_relaxed); }
    [[nodiscard]] bool empty() const noexcept { return nbytes_ == 0; }

   private:
    std::atomic<std::uint64_t>& held_;
    std::uint64_t nbytes_ = 0;
  };
  struct HeldSuperblock {
    Share share;  // released after the memory
    Arena::Superblock superblock;
  };

  ~ArenaResource() override = default;
  std::size_t release_free_chunks() noexcept override;
  [[nodiscard]] bool has_chunks() const noexcept override { return !superblocks_.empty(); }
  [[nodiscard]] Arena& arena_of(const Queue& queue) noexcept;
  [[nodiscard]] Arena* arena_at(const void* pointer) noexcept;
  // Null if the arena has no block that is usable by the queue.
  [[nodiscard]] std::byte* allocate_from_held(Arena& arena, std::size_t nbytes,
                                              std::size_t alignment, Queue& queue);
  [[nodiscard]] Result<HeldSuperblock> allocate_superblock(std::size_t nbytes,
                                                           std::size_t alignment, Queue& queue);
  // A superblock for a request of `nbytes`. Releases unused ones if there is no more memory.
  [[nodiscard]] Result<HeldSuperblock> grow(std::size_t nbytes, std::size_t alignment,
                                            Queue& queue);
  [[nodiscard]] Result<void*> allocate_from_new(Arena& arena, std::size_t nbytes,
                                                std::size_t alignment, Queue& queue);

  const std::uint64_t limit_;
  std::atomic<std::uint64_t> held_{0};
  std::array<Arena, k_arenas> arenas_;
  std::shared_mutex lock_;  // guards the map; locked before an arena's lock
  std::map<std::uintptr_t, HeldSuperblock> superblocks_;
};

}  // namespace isthmus
