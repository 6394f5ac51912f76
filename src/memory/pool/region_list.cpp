// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/region_list.hpp"

#include <algorithm>
#include <iterator>

namespace isthmus {
namespace {

bool begins_after(RegionList::Index number, const Region& region) noexcept {
  return number < region.first;
}

bool ends_after(RegionList::Index number, const Region& region) noexcept {
  return number < region.first + region.count;
}

}  // namespace

RegionList::Iterator RegionList::find(Index number) const noexcept {
  const auto next = std::upper_bound(begin(), end(), number, begins_after);
  ISTHMUS_EXPECTS(next != begin() && ends_after(number, *std::prev(next)), number);
  return std::prev(next);
}

RegionList::Iterator RegionList::find_from(Index number) const noexcept {
  return std::upper_bound(begin(), end(), number, ends_after);
}

std::byte* RegionList::address_of(Index number) const noexcept {
  const auto& region = *find(number);
  return region.base + std::size_t{number - region.first} * k_pool_page_bytes;
}

std::uint64_t RegionList::since(Index number) const noexcept {
  const auto next = std::upper_bound(begin(), end(), number, begins_after);
  return next == begin() ? 0 : std::prev(next)->since;
}

RegionList::Index RegionList::find_numbers(Index count) const noexcept {
  Index first = 1;
  for (const auto& each : all_) {
    if (each.first >= first && each.first - first > count) {
      return first;
    }
    first = each.first + each.count + 1;
  }
  return PoolPageTable::k_pages - first > count ? first : PoolPageTable::k_none;
}

void RegionList::insert(const Region& region) noexcept {
  ISTHMUS_EXPECTS(all_.size() < all_.capacity());
  all_.insert(std::upper_bound(begin(), end(), region.first, begins_after), region);
}

}  // namespace isthmus
