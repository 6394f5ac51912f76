#pragma once
// A set of grains of a table, as bits in four levels: a bit above says whether the word below has
// any. The next member is found in at most seven steps, whatever the distance. Of its 2 MiB of
// address space what is touched takes memory.

#include <array>
#include <cstddef>
#include <cstdint>

namespace isthmus {

// Not safe for threads. Zeroed memory is an empty set.
class grain_set {
 public:
  using index = std::uint32_t;
  static constexpr index k_none = 0;  // never a member
  static constexpr index k_end = index{1} << 24;

  // Pre, of both: 0 < number < k_end. No change where it is, or is not, a member already.
  void insert(index number) noexcept;
  void erase(index number) noexcept;
  [[nodiscard]] bool has(index number) const noexcept;
  // The least member from `from` on; k_none if there is none.
  [[nodiscard]] index next(index from) const noexcept;
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

 private:
  static constexpr unsigned k_levels = 4;
  static constexpr unsigned k_bits = 6;  // of a number, for each level
  // Where the words of a level begin, after those of the levels below.
  static constexpr std::array<std::size_t, k_levels + 1> k_begin{
      0, std::size_t{1} << 18, (std::size_t{1} << 18) + (std::size_t{1} << 12),
      (std::size_t{1} << 18) + (std::size_t{1} << 12) + (std::size_t{1} << 6),
      (std::size_t{1} << 18) + (std::size_t{1} << 12) + (std::size_t{1} << 6) + 1};

  [[nodiscard]] std::uint64_t& word(unsigned level, index of) noexcept {
    return words_[k_begin.at(level) + (of >> k_bits)];
  }
  [[nodiscard]] std::uint64_t word(unsigned level, index of) const noexcept {
    return words_[k_begin.at(level) + (of >> k_bits)];
  }
  [[nodiscard]] static std::uint64_t bit(index of) noexcept {
    return std::uint64_t{1} << (of & 63U);
  }

  std::uint64_t size_ = 0;
  std::array<std::uint64_t, k_begin.back()> words_{};
};

}  // namespace isthmus
