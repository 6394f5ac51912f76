// SPDX-License-Identifier: Apache-2.0
// The layout of an array: extents, strides in bytes, and the offset of the first element. Arrays
// contain one; programs rarely name it.
//
//   const auto rows = isthmus::layout<2>::dense({3, 4}, sizeof(float));
//   rows.permuted({1, 0}).strides;            // (4, 16)
//
// A layout contains neither memory nor dtype; its functions only calculate. Strides may be negative
// or 0. What would require moving elements throws invalid_argument.
//
// Cost: no allocation. Thread safety: as plain values.
#pragma once

#include <isthmus/axes.hpp>

#include <algorithm>
#include <functional>
#include <numeric>

namespace isthmus {
inline namespace v1 {
namespace detail {

inline constexpr std::int64_t k_max_bytes = std::numeric_limits<std::int64_t>::max();

// The number of elements of a shape. Throws invalid_argument for negative extents, and for more
// bytes than memory can hold. Extents of 0 are left out of that check, so that the strides along
// the other axes can be represented.
template <std::size_t Rank>
[[nodiscard]] constexpr std::int64_t checked_count(const axes<Rank>& shape, std::int64_t item) {
  std::int64_t room = k_max_bytes / std::max<std::int64_t>(item, 1);
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) {
    if (extent < 0) {
      raise(status::invalid_argument,
            "negative extent " + std::to_string(extent) + " in the shape " + to_string(shape));
    }
    if (extent > room) {
      raise(status::invalid_argument, "an array of shape " + to_string(shape) +
                                          " and elements of " + std::to_string(item) +
                                          " bytes exceeds the address space");
    }
    room /= std::max<std::int64_t>(extent, 1);
    count *= extent;
  }
  return count;
}

// Strides of a row-major array without gaps.
template <std::size_t Rank>
[[nodiscard]] constexpr axes<Rank> dense_strides(const axes<Rank>& shape,
                                                 std::int64_t item) noexcept {
  axes<Rank> strides;
  strides.resize(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    strides[axis] = item;
    item *= std::max<std::int64_t>(shape[axis], 1);
  }
  return strides;
}

}  // namespace detail

// The layout of an array of `Rank` axes. `item` in its functions is the size of an element in
// bytes.
template <std::size_t Rank>
struct layout {
  axes<Rank> shape{};
  axes<Rank> strides{};     // in bytes
  std::int64_t offset = 0;  // of the element whose indices are 0, in bytes

  // Row-major, without gaps. Throws invalid_argument for negative extents and for too many bytes.
  [[nodiscard]] static constexpr layout dense(const axes<Rank>& shape, std::int64_t item,
                                              std::int64_t offset = 0) {
    static_cast<void>(detail::checked_count(shape, item));
    return {shape, detail::dense_strides(shape, item), offset};
  }

  [[nodiscard]] constexpr std::size_t rank() const noexcept { return shape.size(); }
  // The number of elements.
  [[nodiscard]] constexpr std::int64_t count() const noexcept {
    return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>{});
  }
  // True if the elements are in row-major order without gaps. Strides along extents of 1 are
  // ignored.
  [[nodiscard]] constexpr bool is_contiguous(std::int64_t item) const noexcept {
    for (std::size_t axis = rank(); axis-- > 0;) {
      if (shape[axis] == 0) return true;
      if (shape[axis] != 1 && strides[axis] != item) return count() == 0;
      item *= shape[axis];
    }
    return true;
  }
  // The first byte of any element, and the one after the last; equal if there are no elements.
  struct bytes {
    std::int64_t begin;
    std::int64_t end;
  };
  [[nodiscard]] constexpr bytes reach(std::int64_t item) const noexcept {
    if (count() == 0) return {offset, offset};
    bytes found{offset, offset + item};
    for (std::size_t axis = 0; axis < rank(); ++axis) {
      const std::int64_t way = (shape[axis] - 1) * strides[axis];
      (way < 0 ? found.begin : found.end) += way;
    }
    return found;
  }

  // True if all elements lie within `nbytes` bytes. It also implies, for empty layouts too, that
  // the way along any axis fits int64: code that walks an axis need not check for overflow again.
  [[nodiscard]] constexpr bool lies_within(std::size_t nbytes, std::int64_t item) const noexcept {
    bytes corners{offset, offset};
    for (std::size_t axis = 0; axis < rank(); ++axis) {
      std::int64_t way = 0;
      const std::int64_t steps = std::max<std::int64_t>(shape[axis], 1) - 1;
      if (__builtin_mul_overflow(steps, strides[axis], &way)) return false;
      std::int64_t& corner = way < 0 ? corners.begin : corners.end;
      if (__builtin_add_overflow(corner, way, &corner)) return false;
    }
    const std::size_t most = std::min(nbytes, static_cast<std::size_t>(detail::k_max_bytes));
    const auto room = static_cast<std::int64_t>(most);
    if (count() == 0) return offset >= 0 && offset <= room;
    return corners.begin >= 0 && corners.end <= room - item;
  }

  // With the axes in reverse order.
  [[nodiscard]] constexpr layout transposed() const noexcept {
    layout made = *this;
    for (std::size_t axis = 0; axis < rank(); ++axis) {
      made.shape[axis] = shape[rank() - 1 - axis];
      made.strides[axis] = strides[rank() - 1 - axis];
    }
    return made;
  }
  // Axis i of the result is axis order[i] of this layout. Each axis occurs once; negative numbers
  // count from the end. Throws invalid_argument otherwise.
  [[nodiscard]] constexpr layout permuted(const axes<Rank>& order) const {
    layout made = *this;
    std::uint32_t seen = 0;
    for (std::size_t axis = 0; axis < rank() && order.size() == rank(); ++axis) {
      const auto all = static_cast<std::int64_t>(rank());
      const std::int64_t from = order[axis] < 0 ? order[axis] + all : order[axis];
      if (from < 0 || from >= all) break;
      seen |= 1U << static_cast<std::uint32_t>(from);
      made.shape[axis] = shape[static_cast<std::size_t>(from)];
      made.strides[axis] = strides[static_cast<std::size_t>(from)];
    }
    if (order.size() != rank() || seen != (1U << rank()) - 1U) {
      raise(status::invalid_argument, to_string(order) + " is not an order of the " +
                                          std::to_string(rank()) + " axes: pass each axis once");
    }
    return made;
  }

  // Broadcasts as NumPy does: axes are added in front, and extents of 1 stand for any. Throws
  // invalid_argument for shapes that do not fit, and for more bytes than memory can hold.
  template <std::size_t Wanted>
  [[nodiscard]] constexpr layout<Wanted> broadcast_to(const axes<Wanted>& wanted,
                                                      std::int64_t item) const {
    layout<Wanted> made{wanted, {}, offset};
    made.strides.resize(wanted.size());
    bool fits = rank() <= wanted.size();
    for (std::size_t back = 1; fits && back <= rank(); ++back) {
      const std::size_t from = rank() - back;
      const std::size_t to = wanted.size() - back;
      fits = shape[from] == wanted[to] || shape[from] == 1;
      made.strides[to] = shape[from] == wanted[to] ? strides[from] : 0;
    }
    if (!fits) {
      raise(status::invalid_argument, "an array of shape " + to_string(shape) +
                                          " does not broadcast to " + to_string(wanted));
    }
    static_cast<void>(detail::checked_count(wanted, item));
    return made;
  }

  // The same elements in the same row-major order, in another shape, of which one extent may be -1:
  // the rest. Throws invalid_argument if that needs a copy.
  template <std::size_t Wanted>
  [[nodiscard]] constexpr layout<Wanted> reshaped(const axes<Wanted>& asked,
                                                  std::int64_t item) const {
    const axes<Wanted> wanted = with_rest(asked);
    static_cast<void>(detail::checked_count(wanted, item));
    layout<Wanted> made{wanted, detail::dense_strides(wanted, item), offset};
    if (is_contiguous(item) || follow(made)) return made;
    raise(status::invalid_argument, "an array of shape " + to_string(shape) + " and strides " +
                                        to_string(strides) + " cannot be viewed with shape " +
                                        to_string(wanted) + ": copy it to a dense array first");
  }

  // The same bytes as elements of another size. The last axis, which must have no gaps, is scaled.
  // Throws invalid_argument if it has gaps or not a whole number of new elements.
  [[nodiscard]] constexpr layout reinterpreted(std::int64_t first, std::int64_t last) const {
    layout made = *this;
    if (first == last) return made;
    const bool is_dense = rank() != 0 && (strides[rank() - 1] == first || shape[rank() - 1] == 1);
    if (!is_dense || shape[rank() - 1] * first % last != 0) {
      raise(status::invalid_argument,
            "cannot view as elements of " + std::to_string(last) + " bytes the last axis of " +
                to_string(shape) + " elements of " + std::to_string(first) + " bytes, " +
                to_string(strides) +
                " bytes apart: the axis must have no gaps and a whole number of new elements");
    }
    made.shape[rank() - 1] = shape[rank() - 1] * first / last;
    made.strides[rank() - 1] = last;
    return made;
  }

 private:
  // `asked` with -1 replaced by the extent that is left. Throws invalid_argument if the numbers of
  // elements differ.
  template <std::size_t Wanted>
  [[nodiscard]] constexpr axes<Wanted> with_rest(const axes<Wanted>& asked) const {
    axes<Wanted> wanted = asked;
    const std::int64_t all = count();
    std::size_t open = wanted.size();
    std::int64_t known = 1;
    bool fits = true;
    for (std::size_t axis = 0; axis < wanted.size(); ++axis) {
      if (wanted[axis] == -1 && open == wanted.size()) {
        open = axis;
      } else if (wanted[axis] < 0 ||
                 (wanted[axis] > 0 && known > detail::k_max_bytes / wanted[axis])) {
        fits = false;
      } else {
        known *= wanted[axis];
      }
    }
    if (fits && open != wanted.size() && known > 0) {
      wanted[open] = all / known;
      known *= wanted[open];
    }
    if (fits && known == all && (open == wanted.size() || wanted[open] >= 0)) return wanted;
    raise(status::invalid_argument, "the " + std::to_string(all) +
                                        " elements of an array of shape " + to_string(shape) +
                                        " cannot have the shape " + to_string(asked));
  }

  // Sets the strides of `made`, and returns false if that is impossible: groups of axes of either
  // side that hold the same number of elements must have a common stride here. The algorithm of
  // NumPy's reshape.
  template <std::size_t Wanted>
  [[nodiscard]] constexpr bool follow(layout<Wanted>& made) const {
    const layout<dynamic_rank> old = without_ones();
    std::size_t from = 0, to = 0;
    while (from < old.rank() && to < made.rank()) {
      std::size_t from_end = from + 1, to_end = to + 1;
      std::int64_t held = old.shape[from], wanted = made.shape[to];
      while (held != wanted) {
        if (wanted < held) {
          wanted *= made.shape[to_end++];
        } else {
          held *= old.shape[from_end++];
        }
      }
      for (std::size_t axis = from; axis + 1 < from_end; ++axis) {
        if (old.strides[axis] != old.shape[axis + 1] * old.strides[axis + 1]) return false;
      }
      made.strides[to_end - 1] = old.strides[from_end - 1];
      for (std::size_t axis = to_end - 1; axis > to; --axis) {
        made.strides[axis - 1] = made.strides[axis] * made.shape[axis];
      }
      from = from_end;
      to = to_end;
    }
    for (; to < made.rank(); ++to) {  // extents of 1, whose strides do not matter
      made.strides[to] = to == 0 ? 1 : made.strides[to - 1];
    }
    return true;
  }
  // Without the axes of extent 1.
  [[nodiscard]] constexpr layout<dynamic_rank> without_ones() const {
    layout<dynamic_rank> made;
    made.offset = offset;
    for (std::size_t axis = 0; axis < rank(); ++axis) {
      if (shape[axis] == 1) continue;
      const std::size_t last = made.rank();
      made.shape.resize(last + 1);
      made.strides.resize(last + 1);
      made.shape[last] = shape[axis];
      made.strides[last] = strides[axis];
    }
    return made;
  }
};

static_assert(layout<2>::dense({3, 4}, 4).strides == axes<2>{16, 4});
static_assert(layout<2>::dense({3, 4}, 4).transposed().reach(4).end == 48);
static_assert(layout<1>{{3}, {-4}, 8}.lies_within(12, 4));
static_assert(!layout<1>{{5}, {std::int64_t{1} << 62}, 0}.lies_within(12, 4));

}  // namespace v1
}  // namespace isthmus
