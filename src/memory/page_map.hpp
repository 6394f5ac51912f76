#pragma once
// The page map: from any address of pooled memory, an inner one too, to the record of its grain.
//
// A grain is 64 KiB of address space at a multiple of that; regions of pools consist of whole
// grains. Two levels, indexed by bits of the address: the root lies in the map itself, a leaf of
// 128 KiB stands for each GiB in use. Reading takes no lock and two loads; it may happen at any
// time, of any address. Writing is the pool's, before it hands a region out and after it takes it
// back. As in tcmalloc's page map and snmalloc's.

#include <array>
#include <atomic>
#include <cstddef>

#include "core/sizes.hpp"
#include "core/status.hpp"

namespace isthmus {

struct grain;
inline constexpr unsigned k_grain_bits = 16;
inline constexpr std::size_t k_grain_bytes = std::size_t{1} << k_grain_bits;

class page_map {
 public:
  static constexpr unsigned k_address_bits = 47;  // of a process on x86-64 and AArch64

  // Null for memory of no pool.
  [[nodiscard]] grain* find(const void* pointer) const noexcept {
    const auto at = address(pointer) >> k_grain_bits;
    if (at >> (k_leaf_bits + k_root_bits) != 0) {
      return nullptr;
    }
    const auto* in = root_[at >> k_leaf_bits].load(std::memory_order_acquire);
    return in == nullptr ? nullptr
                         : (*in)[at & (k_leaf_grains - 1)].load(std::memory_order_acquire);
  }

  // Room for `count` grains from `begin` on. OUT_OF_MEMORY; UNSUPPORTED for addresses beyond the
  // map's.
  [[nodiscard]] result<void> prepare(const void* begin, std::size_t count);
  // Enters them; their records follow each other from `first` on. Pre: prepared; `begin` at a
  // multiple of a grain; none of them is in the map.
  void enter(const void* begin, std::size_t count, grain* first) noexcept;
  void remove(const void* begin, std::size_t count) noexcept;

 private:
  static constexpr unsigned k_leaf_bits = 14;
  static constexpr unsigned k_root_bits = k_address_bits - k_grain_bits - k_leaf_bits;
  static constexpr std::size_t k_leaf_grains = std::size_t{1} << k_leaf_bits;
  using leaf = std::array<std::atomic<grain*>, k_leaf_grains>;

  [[nodiscard]] leaf* leaf_for(std::size_t at);
  // Pre: prepared.
  [[nodiscard]] std::atomic<grain*>& entry_of(std::size_t at) noexcept {
    return (*root_[at >> k_leaf_bits].load(std::memory_order_relaxed))[at & (k_leaf_grains - 1)];
  }

  // Of the loader's zeroed pages, of which only those touched take memory.
  std::array<std::atomic<leaf*>, std::size_t{1} << k_root_bits> root_{};
};

// Of the whole process; never destroyed.
extern constinit page_map process_page_map;

}  // namespace isthmus
