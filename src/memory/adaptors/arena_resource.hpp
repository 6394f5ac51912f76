#pragma once
// Blocks of any size, cut from superblocks that threads do not share.
//
// Choose it where what threads free must stay apart, or over an upstream that no pool stands on; a
// pool is quicker nearly always. A pair of a thread and a queue has an arena (arena.hpp), one of a
// fixed number, so that nothing is left behind where a thread or queue ends. What an arena has no
// room for comes from a new superblock: what others keep free is asked for only where upstream, or
// the limit, has no more. A free finds the arena of its block among superblocks by address; it
// takes two locks, neither held over a call of upstream's.

#include <array>
#include <atomic>
#include <map>
#include <shared_mutex>
#include <utility>

#include "memory/adaptors/arena.hpp"
#include "memory/adaptors/keeping_resource.hpp"

namespace isthmus {

class arena_resource final : public keeping_resource {
 public:
  // Pre: `check_upstream`. Superblocks hold `limit_bytes` at most.
  arena_resource(memory_resource& upstream, std::uint64_t limit_bytes)
      : keeping_resource{upstream}, limit_{limit_bytes} {}

  static constexpr std::size_t k_arenas = 64;
  static constexpr std::size_t k_superblock_bytes = std::size_t{1} << 20;

  [[nodiscard]] result<void*> allocate(std::size_t nbytes, std::size_t alignment,
                                       queue& on) override;
  // INVALID_ARGUMENT for what is no block, lies inside one, or was freed before.
  result<void> deallocate(void* pointer, std::size_t nbytes, queue* behind) noexcept override;
  [[nodiscard]] cut_block block_at(const void* pointer) noexcept override;

 private:
  // Bytes of the limit that a superblock has.
  class share {
   public:
    // Empty where they are more than is left.
    share(std::atomic<std::uint64_t>& held, std::uint64_t nbytes, std::uint64_t limit) noexcept;
    share(share&& other) noexcept : held_{other.held_}, nbytes_{std::exchange(other.nbytes_, 0)} {}
    share& operator=(share other) noexcept {
      std::swap(nbytes_, other.nbytes_);  // of the same resource
      return *this;
    }
    ~share() { held_.fetch_sub(nbytes_, std::memory_order_relaxed); }
    [[nodiscard]] bool empty() const noexcept { return nbytes_ == 0; }

   private:
    std::atomic<std::uint64_t>& held_;
    std::uint64_t nbytes_ = 0;
  };
  struct held_superblock {
    share of_limit;  // given back behind the memory
    arena::superblock what;
  };

  ~arena_resource() override = default;
  std::size_t give_back_whole() noexcept override;
  [[nodiscard]] bool has_chunks() const noexcept override { return !superblocks_.empty(); }
  [[nodiscard]] arena& arena_of(const queue& on) noexcept;
  [[nodiscard]] arena* arena_at(const void* pointer) noexcept;
  // Null where the arena has no block that is good for the queue.
  [[nodiscard]] std::byte* take_of_known(arena& from, std::size_t nbytes, std::size_t alignment,
                                         queue& on);
  [[nodiscard]] result<held_superblock> take_superblock(std::size_t nbytes, std::size_t alignment,
                                                        queue& on);
  // For a request of so many bytes: gathers what is free where there is no more.
  [[nodiscard]] result<held_superblock> grow(std::size_t nbytes, std::size_t alignment, queue& on);
  [[nodiscard]] result<void*> take_of_new(arena& from, std::size_t nbytes, std::size_t alignment,
                                          queue& on);

  const std::uint64_t limit_;
  std::atomic<std::uint64_t> held_{0};
  std::array<arena, k_arenas> arenas_;
  std::shared_mutex lock_;  // over the superblocks' addresses; before an arena's
  std::map<std::uintptr_t, held_superblock> superblocks_;
};

}  // namespace isthmus
