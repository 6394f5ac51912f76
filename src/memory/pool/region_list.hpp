// SPDX-License-Identifier: Apache-2.0
#pragma once
// The regions of a region heap, sorted by their first page, and their numbers in the page table.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/expects.hpp"
#include "memory/pool/pool_page_table.hpp"
#include "memory/pool/region_source.hpp"

namespace isthmus {

// Not thread-safe: guarded by the lock of the region heap.
class RegionList {
 public:
  using Index = PoolPageTable::Index;
  using Iterator = std::vector<Region>::const_iterator;

  [[nodiscard]] Iterator begin() const noexcept { return all_.begin(); }
  [[nodiscard]] Iterator end() const noexcept { return all_.end(); }
  [[nodiscard]] std::size_t size() const noexcept { return all_.size(); }
  [[nodiscard]] const Region& operator[](std::size_t position) const noexcept {
    return all_[position];
  }
  // The region that contains the page.
  [[nodiscard]] Iterator find(Index number) const noexcept;
  // The first region that ends after the page.
  [[nodiscard]] Iterator find_from(Index number) const noexcept;
  // The address of a page of a region.
  [[nodiscard]] std::byte* address_of(Index number) const noexcept;
  // As `Region::since`, for the last region that begins at or before the page; 0 if there is none.
  [[nodiscard]] std::uint64_t since(Index number) const noexcept;
  // The first of `count` consecutive free page numbers that have an unused number on either side;
  // `k_none` if there are no such numbers.
  [[nodiscard]] Index find_numbers(Index count) const noexcept;
  // Calls visit(first, count) for each row of adjacent regions, which runs may span, until it
  // returns true.
  template <class Visit>
  bool any_row(Visit&& visit) const noexcept;

  void reserve(std::size_t added) { all_.reserve(all_.size() + added); }
  // Inserts a region at its number, after `reserve`.
  void insert(const Region& region) noexcept;
  void erase(Iterator position) noexcept { all_.erase(position); }
  // Replaces all regions.
  void swap(std::vector<Region>& regions) noexcept {
    ISTHMUS_EXPECTS_SLOW(std::ranges::is_sorted(regions, {}, &Region::first));
    all_.swap(regions);
  }

 private:
  std::vector<Region> all_;
};

template <class Visit>
bool RegionList::any_row(Visit&& visit) const noexcept {
  for (auto each = begin(); each != end();) {
    const auto first = each->first;
    auto row_end = first;
    for (; each != end() && each->first == row_end; ++each) {
      row_end += each->count;
    }
    if (visit(first, row_end - first)) {
      return true;
    }
  }
  return false;
}

}  // namespace isthmus
