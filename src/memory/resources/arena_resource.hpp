// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sub-allocates blocks of any size from superblocks, which are divided among several arenas.
//
// Use it if memory that different threads free must stay separate, or over an upstream that no pool
// can use. A pool is nearly always faster. Each pair of a thread and a queue uses one arena of a
// fixed set (arena.hpp), so no state remains when a thread or queue ends. An arena without a
// suitable block gets a new superblock. Unused superblocks of other arenas are released only if
// upstream has no more memory or the limit is reached. A free searches the superblocks by address
// for the arena of its block. It takes two locks, neither of which is held while upstream is
// called.

#include <array>
#include <atomic>
#include <map>
#include <utility>

#include "core/mutex.hpp"
#include "core/thread_safety.hpp"
#include "memory/resources/arena.hpp"
#include "memory/resources/retaining_resource.hpp"

namespace isthmus {

class ArenaResource final : public RetainingResource {
 public:
  // Call `check_upstream` first. The superblocks together hold at most `limit_bytes` bytes.
  ArenaResource(MemoryResource& upstream, std::uint64_t limit_bytes)
      : RetainingResource{upstream}, limit_{limit_bytes} {}

  static constexpr std::size_t k_arenas = 64;
  static constexpr std::size_t k_superblock_bytes = std::size_t{1} << 20;

  [[nodiscard]] Result<void*> allocate(std::size_t nbytes, std::size_t alignment,
                                       Queue& queue) override;
  // INVALID_ARGUMENT if `pointer` is not a block of this resource, lies inside one, or was freed
  // before.
  Result<void> deallocate(void* pointer, std::size_t nbytes, Queue* after) noexcept override;
  [[nodiscard]] CutBlock block_at(const void* pointer) noexcept override;

 private:
  // The part of the limit that one superblock uses. The destructor returns it.
  class Share {
   public:
    // Empty if less than `nbytes` of the limit is left.
    Share(std::atomic<std::uint64_t>& held, std::uint64_t nbytes, std::uint64_t limit) noexcept;
    Share(Share&& other) noexcept : held_{other.held_}, nbytes_{std::exchange(other.nbytes_, 0)} {}
    Share& operator=(Share other) noexcept {
      std::swap(nbytes_, other.nbytes_);  // both have the same `held_`
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
  [[nodiscard]] bool has_chunks() const noexcept override ISTHMUS_NO_THREAD_SAFETY_ANALYSIS {
    return !superblocks_.empty();
  }
  [[nodiscard]] Arena& arena_of(const Queue& queue) noexcept;
  [[nodiscard]] Arena* arena_at(const void* pointer) noexcept;
  // Null if the arena has no block that is usable by the queue.
  [[nodiscard]] std::byte* allocate_from_held(Arena& arena, std::size_t nbytes,
                                              std::size_t alignment, Queue& queue);
  [[nodiscard]] Result<HeldSuperblock> allocate_superblock(std::size_t nbytes,
                                                           std::size_t alignment, Queue& queue);
  // Allocates a superblock for a request of `nbytes`. If there is no memory, releases unused
  // superblocks and retries.
  [[nodiscard]] Result<HeldSuperblock> grow(std::size_t nbytes, std::size_t alignment,
                                            Queue& queue);
  [[nodiscard]] Result<void*> allocate_from_new(Arena& arena, std::size_t nbytes,
                                                std::size_t alignment, Queue& queue);

  const std::uint64_t limit_;
  std::atomic<std::uint64_t> held_{0};
  std::array<Arena, k_arenas> arenas_;
  SharedMutex lock_;  // locked before an arena's lock
  std::map<std::uintptr_t, HeldSuperblock> superblocks_ ISTHMUS_GUARDED_BY(lock_);
};

}  // namespace isthmus
