#pragma once
// The page map: from any address of pooled memory, an inner one too, to what lies in its grain.
//
// A grain is 64 KiB of address space at a multiple of that; regions of pools consist of whole
// grains. Two levels, indexed by bits of the address: the root lies in the map itself, a leaf of
// 256 KiB stands for each GiB in use. Reading takes no lock and two loads; it may happen at any
// time, of any address. Writing is the pool's, before it hands memory out and after it has it
// back. As in tcmalloc's page map and snmalloc's.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/sizes.hpp"
#include "core/status.hpp"

namespace isthmus {

struct grain;
struct slab;
inline constexpr unsigned k_grain_bits = 16;
inline constexpr std::size_t k_grain_bytes = std::size_t{1} << k_grain_bits;

// The record of a grain and, where blocks lie there, what a free and a look-up need: these do
// without the record, which is one more line of the cache and a load that waits for this one.
class map_entry {
 public:
  // One reading of it, as a whole.
  class seen {
   public:
    explicit constexpr seen(std::uint64_t word) noexcept : word_{word} {}
    // Null for memory of no pool.
    [[nodiscard]] grain* record() const noexcept {
      return reinterpret_cast<grain*>(word_ & k_record);
    }
    // Whether blocks lie there, none of which begins in the grain and has an allocation record.
    [[nodiscard]] bool is_bare() const noexcept { return (word_ & k_is_bare) != 0; }
    // The same, and the record is at one of `count` bytes from `table` on, a multiple of `count`.
    [[nodiscard]] bool is_bare_of(const void* table, std::size_t count) const noexcept {
      return (word_ & (k_is_bare | (k_record & ~(count - 1)))) == (k_is_bare | address(table));
    }
    // Pre: bare.
    [[nodiscard]] unsigned size_class() const noexcept {
      return static_cast<unsigned>(word_ >> k_class_shift) & k_class_mask;
    }

   private:
    std::uint64_t word_;
  };

  [[nodiscard]] seen look() const noexcept { return seen{word_.load(std::memory_order_acquire)}; }
  // Of the last slab there: never unmapped. Pre: `look` has seen one.
  [[nodiscard]] slab& last_slab() const noexcept {
    return *last_slab_.load(std::memory_order_relaxed);
  }

 private:
  friend class page_map;
  static constexpr unsigned k_class_shift = 48;
  static constexpr unsigned k_class_mask = 0x7F;
  static constexpr std::uint64_t k_record = (std::uint64_t{1} << k_class_shift) - 1;
  static constexpr std::uint64_t k_is_bare = std::uint64_t{1} << 63;

  void set(grain* record) noexcept { word_.store(address(record), std::memory_order_release); }
  void set_slab(slab& owner, unsigned size_class) noexcept {
    last_slab_.store(&owner, std::memory_order_relaxed);
    word_.store(address(look().record()) | std::uint64_t{size_class} << k_class_shift | k_is_bare,
                std::memory_order_release);
  }

  std::atomic<std::uint64_t> word_{0};
  std::atomic<slab*> last_slab_{nullptr};
};
static_assert(sizeof(map_entry) == 16, "0.024 % of the memory it describes");

class page_map {
 public:
  [[nodiscard]] const map_entry& at(const void* pointer) const noexcept {
    const auto number = address(pointer) >> k_grain_bits;
    if (number >> (k_leaf_bits + k_root_bits) != 0) [[unlikely]] {
      return k_nothing;
    }
    const auto* in = root_[number >> k_leaf_bits].load(std::memory_order_acquire);
    return in == nullptr ? k_nothing : (*in)[number & (k_leaf_grains - 1)];
  }
  // Null for memory of no pool.
  [[nodiscard]] grain* find(const void* pointer) const noexcept {
    return at(pointer).look().record();
  }

  // Room for `count` grains from `begin` on. OUT_OF_MEMORY; UNSUPPORTED for addresses beyond the
  // map's.
  [[nodiscard]] result<void> prepare(const void* begin, std::size_t count);
  // Enters them; their records follow each other from `first` on. Pre: prepared; `begin` at a
  // multiple of a grain; none of them is in the map.
  void enter(const void* begin, std::size_t count, grain* first) noexcept;
  void remove(const void* begin, std::size_t count) noexcept;

  // Pre: they are in the map.
  void set_slab(const void* begin, std::size_t count, slab& owner, unsigned size_class) noexcept;
  void forget_slab(const void* begin, std::size_t count) noexcept;
  // What begins there is live, and has an allocation record from here on. Nothing for memory of no
  // pool.
  void note_record(const void* pointer) noexcept;

 private:
  static constexpr unsigned k_leaf_bits = 14;
  static constexpr unsigned k_root_bits = k_address_bits - k_grain_bits - k_leaf_bits;
  static constexpr std::size_t k_leaf_grains = std::size_t{1} << k_leaf_bits;
  using leaf = std::array<map_entry, k_leaf_grains>;
  static const map_entry k_nothing;

  [[nodiscard]] leaf* leaf_for(std::size_t number);
  // visit(entry, index) of every grain. Pre: prepared.
  template <class Visit>
  void visit(const void* begin, std::size_t count, Visit&& visit) noexcept;

  // Of the loader's zeroed pages, of which only those touched take memory.
  std::array<std::atomic<leaf*>, std::size_t{1} << k_root_bits> root_{};
};

// Of the whole process; never destroyed.
extern constinit page_map process_page_map;

}  // namespace isthmus
