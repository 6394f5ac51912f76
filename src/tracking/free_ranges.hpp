#pragma once
// Which parts of a range are free: the smallest that is large enough is taken, the first of those.
// Taking and giving cost the logarithm of how many there are.

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/range_set.hpp"

namespace isthmus::tracking {

// One thread's at a time.
class free_ranges {
 public:
  free_ranges() noexcept = default;
  // Throws std::bad_alloc.
  explicit free_ranges(const byte_range& all)
      : by_begin_{{all.begin, all.end}}, by_size_{{all.nbytes(), all.begin}} {}

  // Where it begins; nothing where no part is large enough. Allocates nothing.
  [[nodiscard]] std::optional<std::size_t> take(std::size_t nbytes) noexcept;
  // Without memory it is lost: it stays taken.
  void give(const byte_range& range) noexcept;
  // Calls visit(range) for each run of [0, end) that is not free, in order.
  template <class Visit>
  void each_taken(std::size_t end, Visit visit) const {
    std::size_t at = 0;
    for (const auto& [begin, free_end] : by_begin_) {
      if (begin >= end) {
        break;
      }
      if (at < begin) {
        visit(byte_range{at, begin});
      }
      at = free_end;
    }
    if (at < end) {
      visit(byte_range{at, end});
    }
  }

 private:
  using sized = std::pair<std::size_t, std::size_t>;  // size, begin

  // What lies against the range becomes part of it, and leaves its nodes.
  void join(byte_range& range) noexcept;

  std::map<std::size_t, std::size_t> by_begin_;  // to the end
  std::set<sized> by_size_;
  // For ranges that come when there is no memory.
  std::map<std::size_t, std::size_t>::node_type spare_begin_;
  std::set<sized>::node_type spare_size_;
};

}  // namespace isthmus::tracking
