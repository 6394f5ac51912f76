// SPDX-License-Identifier: Apache-2.0
#pragma once
// A set of the pages (`PoolPage`) of a table, as bits in four levels: a bit shows whether the word
// below it has any member. Finding the next member takes at most seven steps, whatever the
// distance. The set reserves 2 MiB of address space; only touched pages take memory.

#include <array>
#include <cstddef>
#include <cstdint>

namespace isthmus {

// Not thread-safe. Zeroed memory is an empty set.
class PoolPageSet {
 public:
  using Index = std::uint32_t;
  static constexpr Index k_none = 0;  // never a member
  static constexpr Index k_end = Index{1} << 24;

  // `insert` of a member and `erase` of another number change nothing.
  void insert(Index number) noexcept;
  void erase(Index number) noexcept;
  [[nodiscard]] bool has(Index number) const noexcept;
  // The smallest member that is not below `index`; k_none if there is none.
  [[nodiscard]] Index next(Index index) const noexcept;
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

 private:
  static constexpr unsigned k_levels = 4;
  static constexpr unsigned k_bits = 6;  // of a number, in each level
  // The first word of each level, after those of the levels below.
  static constexpr std::array<std::size_t, k_levels + 1> k_begin{
      0, std::size_t{1} << 18, (std::size_t{1} << 18) + (std::size_t{1} << 12),
      (std::size_t{1} << 18) + (std::size_t{1} << 12) + (std::size_t{1} << 6),
      (std::size_t{1} << 18) + (std::size_t{1} << 12) + (std::size_t{1} << 6) + 1};

  [[nodiscard]] std::uint64_t& word(unsigned level, Index index) noexcept {
    return words_[k_begin.at(level) + (index >> k_bits)];
  }
  [[nodiscard]] std::uint64_t word(unsigned level, Index index) const noexcept {
    return words_[k_begin.at(level) + (index >> k_bits)];
  }
  [[nodiscard]] static std::uint64_t bit(Index index) noexcept {
    return std::uint64_t{1} << (index & 63U);
  }

  std::uint64_t size_ = 0;
  std::array<std::uint64_t, k_begin.back()> words_{};
};

}  // namespace isthmus
