// SPDX-License-Identifier: Apache-2.0
#pragma once
// A slab: a page run that is divided into blocks of one size class, and described by a record
// outside of it.
//
// The record is followed by live marks, for the blocks that callers hold, and by two bitmaps of the
// blocks that the slab holds: those usable by any queue (free) and those usable by one queue until
// a fence has passed (waiting). A block in none of these is in a thread cache or in a batch that is
// moving to or from one. A slab that holds all its blocks returns to the run heap.
//
// The live marks and `base` are atomic; the bitmaps and the counts of the blocks that the slab
// holds are guarded by the lock of its class.
//
// A mark is a byte in the first few slabs of a class and in all slabs of large blocks, a bit
// elsewhere. A byte is set by a plain store; a bit needs an atomic exchange because of concurrent
// changes to its neighbours, which costs some 3 ns more. Bytes are spaced so far apart that threads
// which obtained their first blocks alternately do not write the same cache line (where they did,
// an allocation with its free took ten times as long on 16 threads as on one). So a small heap is
// fast and its marks take little memory, and a large one has little metadata: 64 bytes for up to
// 512 KiB, and three bits per block.

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/expects.hpp"
#include "memory/pool/page_map.hpp"
#include "memory/pool/queue_fences.hpp"

namespace isthmus {

// The layout of a slab.
struct SlabShape {
  std::uint32_t block_bytes;
  std::uint32_t blocks;
  std::uint32_t pages;
  bool by_byte;  // whether its marks are bytes

  // The number of slabs of a class that use the first shape: small, with byte marks, which are
  // faster. Later slabs are large and have little metadata.
  static constexpr std::uint32_t k_first = 16;
  // From this block size on a byte per block is negligible: all slabs have byte marks, so that no
  // branch depends on the slab.
  static constexpr std::size_t k_min_byte_marked = std::size_t{16} << 10;

  [[nodiscard]] static constexpr SlabShape of_first(std::size_t block_bytes) noexcept {
    return of(block_bytes, 64, true);
  }
  [[nodiscard]] static constexpr SlabShape of_later(std::size_t block_bytes) noexcept {
    return of(block_bytes, 2048, block_bytes >= k_min_byte_marked);
  }
  // The fewest pages that hold a block, for use if there is no memory for more.
  [[nodiscard]] static constexpr SlabShape smallest(std::size_t block_bytes) noexcept {
    return in_pages(block_bytes, pool_pages_for(block_bytes), true);
  }
  // Words of a bitmap with one bit per block.
  [[nodiscard]] constexpr std::size_t words() const noexcept { return (blocks + 63) / 64; }

 private:
  // The smallest slab with enough blocks that wastes at most 1/64 of its size after the last block.
  [[nodiscard]] static constexpr SlabShape of(std::size_t block_bytes, std::size_t max_enough,
                                              bool by_byte) noexcept {
    constexpr std::size_t k_max_pages = 32;
    const auto min_blocks =
        std::clamp<std::size_t>((std::size_t{512} << 10) / block_bytes, 4, max_enough);
    const auto is_suitable = [&](std::size_t nbytes) {
      return nbytes / block_bytes >= min_blocks && nbytes % block_bytes <= nbytes / 64;
    };
    std::size_t count = 1;
    while (count < k_max_pages && !is_suitable(count * k_pool_page_bytes)) {
      ++count;
    }
    return in_pages(block_bytes, count, by_byte);
  }
  [[nodiscard]] static constexpr SlabShape in_pages(std::size_t block_bytes, std::size_t count,
                                                    bool by_byte) noexcept {
    return {static_cast<std::uint32_t>(block_bytes),
            static_cast<std::uint32_t>(count * k_pool_page_bytes / block_bytes),
            static_cast<std::uint32_t>(count), by_byte};
  }
};

// The fields that an allocation and a free use are last: since the record starts at `k_offset` in a
// cache line, these fields are at the start of the next line. Bit marks follow immediately; byte
// marks begin in the line after that.
struct Slab {
  static constexpr std::size_t k_line = 64;
  static constexpr std::size_t k_offset = 24;
  static constexpr unsigned k_shift = 42;
  static constexpr std::uint32_t k_no_block = ~std::uint32_t{0};

  explicit Slab(const SlabShape& shape) noexcept
      : reciprocal{((std::uint64_t{1} << k_shift) + shape.block_bytes - 1) / shape.block_bytes},
        block_bytes{shape.block_bytes},
        blocks{static_cast<std::uint16_t>(shape.blocks)},
        by_byte{shape.by_byte},
        mark_shift_{static_cast<std::uint8_t>(mark_shift(shape))} {}

  Slab* previous = nullptr;  // in its class's list
  Slab* next = nullptr;
  std::uint32_t free_count = 0;  // free blocks held
  std::uint32_t waiting = 0;     // waiting blocks held, all for `until`
  Ticket until;
  std::uint32_t first_page = 0;
  std::uint32_t shard = 0;  // the shard that lists it (central_lists.hpp)
  std::atomic<std::byte*> base{nullptr};
  const std::uint64_t reciprocal;  // 2**k_shift / block size, rounded up
  const std::uint32_t block_bytes;
  const std::uint16_t blocks;
  const bool by_byte;

 private:
  const std::uint8_t mark_shift_;  // byte index of a mark: block number << mark_shift_

 public:
  [[nodiscard]] std::uint32_t pages() const noexcept {
    constexpr auto k_page = static_cast<std::uint32_t>(k_pool_page_bytes);
    return (blocks * block_bytes + k_page - 1) / k_page;
  }
  [[nodiscard]] std::size_t words() const noexcept { return shape().words(); }
  // Bitmaps of the free and the waiting blocks; guarded by the lock of the class.
  [[nodiscard]] std::uint64_t* free_bitmap() noexcept {
    return reinterpret_cast<std::uint64_t*>(marks()) + mark_words(shape());
  }
  [[nodiscard]] std::uint64_t* waiting_bitmap() noexcept { return free_bitmap() + words(); }
  [[nodiscard]] bool is_unused() const noexcept { return free_count + waiting == blocks; }
  [[nodiscard]] static constexpr std::size_t bytes_for(const SlabShape& shape) noexcept {
    return marks_offset(shape.by_byte) +
           (mark_words(shape) + shape.words() * 2) * sizeof(std::uint64_t);
  }

  [[nodiscard]] SlabShape shape() const noexcept { return {block_bytes, blocks, pages(), by_byte}; }
  [[nodiscard]] std::byte* address_of(std::size_t block) const noexcept {
    return base.load(std::memory_order_relaxed) + block * block_bytes;
  }
  // The number of the block that contains `pointer`; k_no_block after the last. Exact: offset <
  // 2**21 and reciprocal < 2**k_shift / block_bytes + 1, so offset * reciprocal is too large by
  // less than 2**21. A wrong result would need an excess of at least 2**k_shift / block_bytes,
  // which is 2**24 or more.
  [[nodiscard]] std::uint32_t block_containing(const void* pointer) const noexcept {
    // Checks the offset, since a stale pointer may have any offset.
    const auto offset = offset_of(pointer);
    return offset < std::uint64_t{blocks} * block_bytes ? number_at(offset) : k_no_block;
  }
  // As `block_containing`, for a pointer that lies in a block.
  [[nodiscard]] std::uint32_t number_of(const void* pointer) const noexcept {
    ISTHMUS_EXPECTS(offset_of(pointer) < std::uint64_t{blocks} * block_bytes, pointer);
    return number_at(offset_of(pointer));
  }
  // As `block_containing`, but returns k_no_block unless a block begins at `pointer`.
  [[nodiscard]] std::uint32_t block_at(const void* pointer) const noexcept {
    const auto offset = offset_of(pointer);
    const auto number = number_at(offset);  // meaningless for a stale pointer
    return number < blocks && std::uint64_t{number} * block_bytes == offset ? number : k_no_block;
  }

  // No other thread holds the block.
  void mark_live(std::uint32_t block) noexcept {
    if (by_byte) {
      byte_of(block).store(1, std::memory_order_relaxed);
    } else {
      word_of(block).fetch_or(bit_of(block), std::memory_order_relaxed);
    }
  }
  // Returns false if the block was not live, which is a double free. If several threads free the
  // block at once, exactly one gets true.
  [[nodiscard]] bool mark_freed(std::uint32_t block) noexcept {
    return by_byte ? byte_of(block).exchange(0, std::memory_order_relaxed) != 0
                   : (word_of(block).fetch_and(~bit_of(block), std::memory_order_relaxed) &
                      bit_of(block)) != 0;
  }
  // As `mark_freed`, without a result. No other thread can free the block concurrently.
  void mark_freed_exclusive(std::uint32_t block) noexcept {
    if (by_byte) {
      byte_of(block).store(0, std::memory_order_relaxed);
    } else {
      word_of(block).fetch_and(~bit_of(block), std::memory_order_relaxed);
    }
  }
  [[nodiscard]] bool is_live(std::uint32_t block) noexcept {
    return by_byte ? byte_of(block).load(std::memory_order_relaxed) != 0
                   : (word_of(block).load(std::memory_order_relaxed) & bit_of(block)) != 0;
  }
  [[nodiscard]] std::uint32_t count_live() noexcept {
    int found = 0;  // each byte is 0 or 1
    for (std::size_t word = 0; word < mark_words(shape()); ++word) {
      found += std::popcount(mark_word(word).load(std::memory_order_relaxed));
    }
    return static_cast<std::uint32_t>(found);
  }
  void clear_live_marks() noexcept {
    for (std::size_t word = 0; word < mark_words(shape()); ++word) {
      mark_word(word).store(0, std::memory_order_relaxed);
    }
  }

 private:
  // A cache line has at most as many byte marks as a thread cache's first refill has blocks.
  [[nodiscard]] static constexpr unsigned mark_shift(const SlabShape& shape) noexcept {
    return shape.block_bytes <= 4096 ? 3 : shape.block_bytes < (64U << 10) ? 4 : 6;
  }
  [[nodiscard]] static constexpr std::size_t marks_offset(bool by_byte) noexcept {
    return by_byte ? 2 * k_line - k_offset : k_line;
  }
  [[nodiscard]] static constexpr std::size_t mark_words(const SlabShape& shape) noexcept {
    return !shape.by_byte
               ? shape.words()
               : (std::size_t{shape.blocks} << mark_shift(shape)) / sizeof(std::uint64_t);
  }
  [[nodiscard]] std::byte* marks() noexcept {
    return reinterpret_cast<std::byte*>(this) + marks_offset(by_byte);
  }
  [[nodiscard]] std::atomic<std::uint8_t>& byte_of(std::uint32_t block) noexcept {
    return reinterpret_cast<std::atomic<std::uint8_t>*>(marks())[std::size_t{block} << mark_shift_];
  }
  [[nodiscard]] std::atomic<std::uint64_t>& mark_word(std::size_t number) noexcept {
    return reinterpret_cast<std::atomic<std::uint64_t>*>(marks())[number];
  }
  [[nodiscard]] std::atomic<std::uint64_t>& word_of(std::uint32_t block) noexcept {
    return mark_word(block / 64);
  }
  [[nodiscard]] static std::uint64_t bit_of(std::uint32_t block) noexcept {
    return std::uint64_t{1} << block % 64;
  }
  [[nodiscard]] std::uint32_t number_at(std::uint64_t offset) const noexcept {
    return static_cast<std::uint32_t>(offset * reciprocal >> k_shift);
  }
  [[nodiscard]] std::uint64_t offset_of(const void* pointer) const noexcept {
    return static_cast<std::uint64_t>(static_cast<const std::byte*>(pointer) -
                                      base.load(std::memory_order_relaxed));
  }
};
static_assert(sizeof(Slab) == Slab::k_line);

}  // namespace isthmus
