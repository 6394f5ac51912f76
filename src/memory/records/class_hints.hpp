// SPDX-License-Identifier: Apache-2.0
#pragma once
// A filter for look-ups in the registry. It returns the size classes that records near an address
// may have, so that a look-up probes one or two classes instead of all classes that the process
// uses.
//
// A record marks its class in every granule of the address space that it overlaps. Granules are 64
// KiB for small records and 1 GiB for others, so that a record overlaps few of them. Granules share
// the cells of a table, and marks are never removed. Both can cause unnecessary probes, but never
// hide a record. Thread-safe and lock-free.

#include <array>
#include <atomic>
#include <cstdint>

namespace isthmus {

class ClassHints {
 public:
  // Must be called before look-ups can find the record.
  void mark(const void* base, std::size_t nbytes, unsigned size_class) noexcept;

  // Bit n is set if records near `pointer` may have class n.
  [[nodiscard]] std::uint64_t classes_at(const void* pointer) const noexcept;

 private:
  static constexpr unsigned k_cell_bits = 14;
  static constexpr unsigned k_small_granule = 16;  // log2 of the bytes
  static constexpr unsigned k_large_granule = 30;
  static constexpr unsigned k_last_small_class = 22;
  static constexpr std::uintptr_t k_mask = (std::uintptr_t{1} << k_cell_bits) - 1;

  std::array<std::atomic<std::uint64_t>, std::size_t{1} << k_cell_bits> small_{};
  std::array<std::atomic<std::uint64_t>, std::size_t{1} << k_cell_bits> large_{};
};

inline std::uint64_t ClassHints::classes_at(const void* pointer) const noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(pointer);
  return small_[at >> k_small_granule & k_mask].load(std::memory_order_relaxed) |
         large_[at >> k_large_granule & k_mask].load(std::memory_order_relaxed);
}

}  // namespace isthmus
