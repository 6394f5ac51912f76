#pragma once
// A slab: a run of grains cut into blocks of one size class, described beside it.
//
// Three bitmaps stand behind the record: which blocks a caller has, and which the slab itself has,
// for anybody (free) or for one queue till a fence has passed (waiting). What is in none is in a
// lane or a batch on its way between them. A slab whose blocks it all has goes back to the run
// heap. Host metadata: 64 bytes and three bits a block.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "memory/page_map.hpp"
#include "memory/queue_slots.hpp"

namespace isthmus {

// How a class's slabs are laid out.
struct slab_shape {
  std::uint32_t block_bytes;
  std::uint32_t blocks;
  std::uint32_t grains;

  // The smallest with enough blocks that loses at most 1/64 of itself behind the last one.
  [[nodiscard]] static constexpr slab_shape of(std::size_t block_bytes) noexcept {
    constexpr std::size_t k_most_grains = 32;
    const auto enough = std::clamp<std::size_t>((std::size_t{512} << 10) / block_bytes, 4, 64);
    const auto is_good = [&](std::size_t nbytes) {
      return nbytes / block_bytes >= enough && nbytes % block_bytes <= nbytes / 64;
    };
    std::size_t count = 1;
    while (count < k_most_grains && !is_good(count * k_grain_bytes)) {
      ++count;
    }
    return {static_cast<std::uint32_t>(block_bytes),
            static_cast<std::uint32_t>(count * k_grain_bytes / block_bytes),
            static_cast<std::uint32_t>(count)};
  }
  [[nodiscard]] constexpr std::size_t words() const noexcept { return (blocks + 63) / 64; }
};

// What an allocation and a free look at ends the record, followed by the bits that they change: at
// `k_offset` in a line of the cache these share the next.
struct slab {
  static constexpr std::size_t k_line = 64;
  static constexpr std::size_t k_offset = 24;
  static constexpr unsigned k_shift = 42;
  static constexpr std::uint32_t k_no_block = ~std::uint32_t{0};

  explicit slab(const slab_shape& shape) noexcept
      : reciprocal{((std::uint64_t{1} << k_shift) + shape.block_bytes - 1) / shape.block_bytes},
        block_bytes{shape.block_bytes},
        blocks{shape.blocks} {}

  slab* before = nullptr;  // in its class's list
  slab* after = nullptr;
  std::uint32_t kept = 0;     // free ones
  std::uint32_t waiting = 0;  // and those that wait, all for the same ticket
  ticket until;
  std::uint32_t first_grain = 0;
  std::atomic<std::byte*> base{nullptr};
  const std::uint64_t reciprocal;  // of the block size, times 2**k_shift
  const std::uint32_t block_bytes;
  const std::uint32_t blocks;

  [[nodiscard]] std::size_t words() const noexcept { return (blocks + 63) / 64; }
  // The blocks that callers have.
  [[nodiscard]] std::atomic<std::uint64_t>* live() noexcept {
    return reinterpret_cast<std::atomic<std::uint64_t>*>(this + 1);
  }
  // Those that the slab has; its class's lock stands around them.
  [[nodiscard]] std::uint64_t* free() noexcept {
    return reinterpret_cast<std::uint64_t*>(live() + words());
  }
  [[nodiscard]] std::uint64_t* held_back() noexcept { return free() + words(); }
  [[nodiscard]] bool is_whole() const noexcept { return kept + waiting == blocks; }
  [[nodiscard]] static constexpr std::size_t bytes_for(const slab_shape& shape) noexcept {
    return sizeof(slab) + shape.words() * 3 * sizeof(std::uint64_t);
  }

  [[nodiscard]] std::byte* address_of(std::size_t block) const noexcept {
    return base.load(std::memory_order_relaxed) + block * block_bytes;
  }
  // The number of the block that holds `pointer`; k_no_block behind the last. Exact: an offset is
  // below 2**21 and a reciprocal too large by less than 2**18 / 2**k_shift.
  [[nodiscard]] std::uint32_t block_holding(const void* pointer) const noexcept {
    // By the offset: a stale pointer's may be anything.
    const auto within = std::uint64_t{blocks} * block_bytes;
    return offset_of(pointer) < within ? number_of(pointer) : k_no_block;
  }
  // The same, of what is in a block.
  [[nodiscard]] std::uint32_t number_of(const void* pointer) const noexcept {
    return static_cast<std::uint32_t>(offset_of(pointer) * reciprocal >> k_shift);
  }
  // The same for one that begins at `pointer`; k_no_block inside it too.
  [[nodiscard]] std::uint32_t block_at(const void* pointer) const noexcept {
    const auto number = block_holding(pointer);
    return std::uint64_t{number} * block_bytes == offset_of(pointer) ? number : k_no_block;
  }

  void mark_live(std::uint32_t block) noexcept {
    live()[block / 64].fetch_or(std::uint64_t{1} << block % 64, std::memory_order_relaxed);
  }
  // False if it was not: freed twice.
  [[nodiscard]] bool mark_dead(std::uint32_t block) noexcept {
    const auto bit = std::uint64_t{1} << block % 64;
    return (live()[block / 64].fetch_and(~bit, std::memory_order_relaxed) & bit) != 0;
  }
  [[nodiscard]] bool is_live(std::uint32_t block) noexcept {
    return (live()[block / 64].load(std::memory_order_relaxed) >> block % 64 & 1) != 0;
  }

 private:
  [[nodiscard]] std::uint64_t offset_of(const void* pointer) const noexcept {
    return static_cast<std::uint64_t>(static_cast<const std::byte*>(pointer) -
                                      base.load(std::memory_order_relaxed));
  }
};
static_assert(sizeof(slab) == slab::k_line);

}  // namespace isthmus
