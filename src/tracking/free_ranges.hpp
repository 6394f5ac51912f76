// SPDX-License-Identifier: Apache-2.0
#pragma once
// Free parts of an address range. Allocation is best fit, at the lowest address among equal sizes.
// Both operations take time logarithmic in the number of free parts. Not thread-safe.

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/range_set.hpp"

namespace isthmus::tracking {

class FreeRanges {
 public:
  FreeRanges() noexcept = default;
  // Throws std::bad_alloc.
  explicit FreeRanges(const ByteRange& all)
      : by_begin_{{all.begin, all.end}}, by_size_{{all.nbytes(), all.begin}} {}

  // Returns the beginning of the allocated part, or nothing if no free part is large enough.
  // Allocates no memory.
  [[nodiscard]] std::optional<std::size_t> allocate(std::size_t nbytes) noexcept;
  // Frees a range and joins it with adjacent free ranges. If the memory for a node cannot be
  // allocated the range remains allocated permanently.
  void release(const ByteRange& range) noexcept;
  // Calls visit(range) for each maximal range of [0, end) that is not free, in order.
  template <class Visit>
  void visit_allocated(std::size_t end, Visit visit) const {
    std::size_t at = 0;
    for (const auto& [begin, free_end] : by_begin_) {
      if (begin >= end) {
        break;
      }
      if (at < begin) {
        visit(ByteRange{at, begin});
      }
      at = free_end;
    }
    if (at < end) {
      visit(ByteRange{at, end});
    }
  }

 private:
  using Sized = std::pair<std::size_t, std::size_t>;  // size, begin

  // Extends `range` by the adjacent free ranges and removes their nodes.
  void join(ByteRange& range) noexcept;

  std::map<std::size_t, std::size_t> by_begin_;  // begin to end
  std::set<Sized> by_size_;
  // Nodes of removed ranges, cached so that `release` usually allocates no memory.
  std::map<std::size_t, std::size_t>::node_type spare_begin_;
  std::set<Sized>::node_type spare_size_;
};

}  // namespace isthmus::tracking
