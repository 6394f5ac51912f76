#pragma once
// Which size classes the registry's records about an address have, so that a look-up probes for one
// or two of them instead of for all that the process uses.
//
// A record leaves its class at every granule of the address space that it overlaps: granules of
// 64 KiB for small ones, of 1 GiB for others, so that there are few of them. Granules share cells
// of a table, and marks stay: either costs a probe too many, never one too few.

#include <array>
#include <atomic>
#include <cstdint>

namespace isthmus {

class class_hints {
 public:
  // Pre: nbytes > 0, size_class < 64. Before the record can be found.
  void mark(const void* base, std::size_t nbytes, unsigned size_class) noexcept;

  // A bit for each class.
  [[nodiscard]] std::uint64_t about(const void* pointer) const noexcept;

 private:
  static constexpr unsigned k_cell_bits = 14;
  static constexpr unsigned k_small_granule = 16;  // its bits of address
  static constexpr unsigned k_large_granule = 30;
  static constexpr unsigned k_last_small_class = 22;
  static constexpr std::uintptr_t k_mask = (std::uintptr_t{1} << k_cell_bits) - 1;

  std::array<std::atomic<std::uint64_t>, std::size_t{1} << k_cell_bits> small_{};
  std::array<std::atomic<std::uint64_t>, std::size_t{1} << k_cell_bits> large_{};
};

inline std::uint64_t class_hints::about(const void* pointer) const noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(pointer);
  return small_[at >> k_small_granule & k_mask].load(std::memory_order_relaxed) |
         large_[at >> k_large_granule & k_mask].load(std::memory_order_relaxed);
}

}  // namespace isthmus
