// SPDX-License-Identifier: Apache-2.0
// The layout of an array: extents, strides in bytes, and the offset of the first element. Every
// array contains a layout; programs rarely use this type directly.
//
//   const auto rows = isthmus::layout<2>::dense({3, 4}, sizeof(float));
//   rows.permuted({1, 0}).strides;            // (4, 16)
//
// A layout contains neither memory nor dtype; its functions only calculate. Strides may be negative
// or 0. A view that would require moving elements throws invalid_argument.
//
// Cost: no allocation, except for more than four axes of a dynamic number. Thread safety: as plain
// values.
#pragma once

#include <isthmus/axes.hpp>

#include <algorithm>
#include <bit>
#include <optional>

namespace isthmus {
inline namespace v1 {
namespace detail {

inline constexpr std::int64_t k_max_bytes = std::numeric_limits<std::int64_t>::max();

// Whether the strides of a dense array of that shape, and its size in bytes, fit int64. Extents of
// 0 count as 1, so that the strides along the other axes can be represented. Precondition: no
// extent is negative.
template <std::size_t Rank>
[[nodiscard]] constexpr bool fits_memory(const axes<Rank>& shape, std::int64_t item) noexcept {
  std::int64_t nbytes = item;
  bool fits = true;
  for (const std::int64_t extent : shape) {
    fits = fits && !__builtin_mul_overflow(nbytes, std::max<std::int64_t>(extent, 1), &nbytes);
  }
  return fits;
}

// Throws invalid_argument for negative extents, and unless fits_memory().
template <std::size_t Rank>
constexpr void check_shape(const axes<Rank>& shape, std::int64_t item) {
  for (const std::int64_t extent : shape) {
    if (extent < 0) {
      raise(status::invalid_argument,
            "negative extent " + std::to_string(extent) + " in the shape " + to_string(shape));
    }
  }
  if (!fits_memory(shape, item)) {
    raise(status::invalid_argument, "an array of shape " + to_string(shape) + " and elements of " +
                                        std::to_string(item) + " bytes exceeds the address space");
  }
}

// Strides of a row-major array without gaps.
template <std::size_t Rank>
[[nodiscard]] constexpr axes<Rank> dense_strides(const axes<Rank>& shape, std::int64_t item) {
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
    detail::check_shape(shape, item);
    return {shape, detail::dense_strides(shape, item), offset};
  }

  [[nodiscard]] constexpr std::size_t rank() const noexcept { return shape.size(); }
  // The number of elements.
  [[nodiscard]] constexpr std::int64_t count() const noexcept {
    std::int64_t product = 1;
    for (const std::int64_t extent : shape) product *= extent;
    return product;
  }
  [[nodiscard]] constexpr bool is_empty() const noexcept {
    return std::find(shape.begin(), shape.end(), 0) != shape.end();
  }
  // True if the elements are in row-major order without gaps, or if there are none. Strides along
  // extents of 1 are ignored.
  [[nodiscard]] constexpr bool is_contiguous(std::int64_t item) const noexcept {
    for (std::size_t axis = rank(); axis-- > 0;) {
      if (shape[axis] == 1) continue;
      if (shape[axis] == 0) return true;
      if (strides[axis] != item || __builtin_mul_overflow(item, shape[axis], &item))
        return is_empty();
    }
    return true;
  }
  // The same for column-major order, in which the first axis varies fastest.
  [[nodiscard]] constexpr bool is_column_major(std::int64_t item) const
      noexcept(Rank != dynamic_rank) {
    return transposed().is_contiguous(item);
  }
  // The offsets of the first byte of the elements and of the byte after the last one; equal if
  // there are no elements.
  struct bytes {
    std::int64_t begin;
    std::int64_t end;
  };
  [[nodiscard]] constexpr bytes byte_range(std::int64_t item) const noexcept {
    if (is_empty()) return {offset, offset};
    bytes range{offset, offset + item};
    for (std::size_t axis = 0; axis < rank(); ++axis) {
      const std::int64_t distance = (shape[axis] - 1) * strides[axis];
      (distance < 0 ? range.begin : range.end) += distance;
    }
    return range;
  }
  // The same range for a layout from an untrusted source, of at least one element: extents of 0
  // count as 1. nullopt if the range, its size or the distance along an axis do not fit int64.
  [[nodiscard]] constexpr std::optional<bytes> checked_byte_range(
      std::int64_t item) const noexcept {
    bytes range{offset, offset};
    bool fits = !__builtin_add_overflow(range.end, item, &range.end);
    for (std::size_t axis = 0; fits && axis < rank(); ++axis) {
      std::int64_t distance = 0;
      const std::int64_t steps = std::max<std::int64_t>(shape[axis], 1) - 1;
      fits = !__builtin_mul_overflow(steps, strides[axis], &distance);
      std::int64_t& corner = distance < 0 ? range.begin : range.end;
      fits = fits && !__builtin_add_overflow(corner, distance, &corner);
    }
    std::int64_t nbytes = 0;
    fits = fits && !__builtin_sub_overflow(range.end, range.begin, &nbytes);
    return fits ? std::optional<bytes>(range) : std::nullopt;
  }

  // True if all elements lie within `nbytes` bytes. The distance along any axis then fits int64,
  // for empty layouts too, so that code that iterates along an axis need not check for overflow
  // again.
  [[nodiscard]] constexpr bool lies_within(std::size_t nbytes, std::int64_t item) const noexcept {
    const std::optional<bytes> range = checked_byte_range(item);
    const std::size_t clamped_bytes =
        std::min(nbytes, static_cast<std::size_t>(detail::k_max_bytes));
    const auto limit = static_cast<std::int64_t>(clamped_bytes);
    if (!range) return false;
    if (is_empty()) return offset >= 0 && offset <= limit;
    return range->begin >= 0 && range->end <= limit;
  }

  // The layout with the axes in reverse order.
  [[nodiscard]] constexpr layout transposed() const noexcept(Rank != dynamic_rank) {
    layout result = *this;
    std::reverse(result.shape.begin(), result.shape.end());
    std::reverse(result.strides.begin(), result.strides.end());
    return result;
  }
  // Axis i of the result is axis order[i] of this layout. Each axis occurs once; negative numbers
  // count from the end. Throws invalid_argument otherwise.
  [[nodiscard]] constexpr layout permuted(const axes<Rank>& order) const {
    layout result = *this;
    std::uint64_t seen = 0;
    for (std::size_t axis = 0; axis < rank() && order.size() == rank(); ++axis) {
      const auto axis_count = static_cast<std::int64_t>(rank());
      const std::int64_t source_axis = order[axis] < 0 ? order[axis] + axis_count : order[axis];
      if (source_axis < 0 || source_axis >= axis_count) break;
      seen |= std::uint64_t{1} << static_cast<std::uint64_t>(source_axis);
      result.shape[axis] = shape[static_cast<std::size_t>(source_axis)];
      result.strides[axis] = strides[static_cast<std::size_t>(source_axis)];
    }
    if (order.size() != rank() || static_cast<std::size_t>(std::popcount(seen)) != rank()) {
      raise(status::invalid_argument, to_string(order) + " is not an order of the " +
                                          std::to_string(rank()) + " axes: pass each axis once");
    }
    return result;
  }

  // Broadcasts as NumPy does: axes are added in front, and an extent of 1 matches any extent.
  // Throws invalid_argument for shapes that do not fit, and for more bytes than memory can hold.
  template <std::size_t TargetRank>
  [[nodiscard]] constexpr layout<TargetRank> broadcast_to(const axes<TargetRank>& target_shape,
                                                          std::int64_t item) const {
    std::optional<layout<TargetRank>> result = try_broadcast(target_shape);
    if (!result) {
      raise(status::invalid_argument, "an array of shape " + to_string(shape) +
                                          " does not broadcast to " + to_string(target_shape));
    }
    detail::check_shape(target_shape, item);
    return *std::move(result);
  }
  // The same, without a limit on the bytes. nullopt for shapes that do not fit.
  template <std::size_t TargetRank>
  [[nodiscard]] constexpr std::optional<layout<TargetRank>> try_broadcast(
      const axes<TargetRank>& target_shape) const {
    if (rank() > target_shape.size()) return std::nullopt;
    layout<TargetRank> result{target_shape, {}, offset};
    result.strides.resize(target_shape.size());
    const std::size_t added_axes = target_shape.size() - rank();
    for (std::size_t axis = 0; axis < rank(); ++axis) {
      const bool is_same = shape[axis] == target_shape[added_axes + axis];
      if (!is_same && shape[axis] != 1) return std::nullopt;
      result.strides[added_axes + axis] = is_same ? strides[axis] : 0;
    }
    return result;
  }

  // The same elements in the same row-major order, with another shape. One extent may be -1 and is
  // then computed. Throws invalid_argument if the new shape requires a copy.
  template <std::size_t TargetRank>
  [[nodiscard]] constexpr layout<TargetRank> reshaped(const axes<TargetRank>& requested,
                                                      std::int64_t item) const {
    const axes<TargetRank> target_shape = infer_extent(requested);
    detail::check_shape(target_shape, item);
    std::optional<layout<TargetRank>> result = try_reshape(target_shape, item);
    if (result) return *std::move(result);
    raise(status::invalid_argument, "an array of shape " + to_string(shape) + " and strides " +
                                        to_string(strides) + " cannot be viewed with shape " +
                                        to_string(target_shape) +
                                        ": copy it to a dense array first");
  }
  // The same, or nullopt if the shape requires a copy. Precondition: `target_shape` has as many
  // elements as this layout, and detail::fits_memory() holds for it.
  template <std::size_t TargetRank>
  [[nodiscard]] constexpr std::optional<layout<TargetRank>> try_reshape(
      const axes<TargetRank>& target_shape, std::int64_t item) const {
    layout<TargetRank> result{target_shape, detail::dense_strides(target_shape, item), offset};
    if (!is_contiguous(item) && !compute_strides(result, item)) return std::nullopt;
    return result;
  }

  // The same bytes as elements of another size. The last axis, which must have no gaps, is scaled.
  // Throws invalid_argument if it has gaps or not a whole number of new elements.
  [[nodiscard]] constexpr layout reinterpreted(std::int64_t old_item, std::int64_t new_item) const {
    layout result = *this;
    if (old_item == new_item) return result;
    const bool is_dense =
        rank() != 0 && (strides[rank() - 1] == old_item || shape[rank() - 1] == 1);
    if (!is_dense || shape[rank() - 1] * old_item % new_item != 0) {
      raise(status::invalid_argument,
            "cannot view as elements of " + std::to_string(new_item) + " bytes the last axis of " +
                to_string(shape) + " elements of " + std::to_string(old_item) + " bytes, " +
                to_string(strides) +
                " bytes apart: the axis must have no gaps and a whole number of new elements");
    }
    result.shape[rank() - 1] = shape[rank() - 1] * old_item / new_item;
    result.strides[rank() - 1] = new_item;
    return result;
  }

 private:
  // `requested` with -1 replaced by the extent that the number of elements implies. Throws
  // invalid_argument if the numbers of elements differ.
  template <std::size_t TargetRank>
  [[nodiscard]] constexpr axes<TargetRank> infer_extent(const axes<TargetRank>& requested) const {
    axes<TargetRank> target_shape = requested;
    const std::int64_t element_count = count();
    std::size_t inferred_axis = target_shape.size();
    std::int64_t product = 1;
    bool fits = true;
    for (std::size_t axis = 0; axis < target_shape.size(); ++axis) {
      if (target_shape[axis] == -1 && inferred_axis == target_shape.size()) {
        inferred_axis = axis;
      } else if (target_shape[axis] < 0 ||
                 (target_shape[axis] > 0 && product > detail::k_max_bytes / target_shape[axis])) {
        fits = false;
      } else {
        product *= target_shape[axis];
      }
    }
    if (fits && inferred_axis != target_shape.size() && product > 0) {
      target_shape[inferred_axis] = element_count / product;
      product *= target_shape[inferred_axis];
    }
    if (fits && product == element_count &&
        (inferred_axis == target_shape.size() || target_shape[inferred_axis] >= 0))
      return target_shape;
    raise(status::invalid_argument, "the " + std::to_string(element_count) +
                                        " elements of an array of shape " + to_string(shape) +
                                        " cannot have the shape " + to_string(requested));
  }

  // Sets the strides of `result`, or returns false if there are none. Uses the algorithm of NumPy's
  // reshape: it matches groups of axes of both layouts that have the same number of elements, and
  // the axes of each group of this layout must have a common stride.
  template <std::size_t TargetRank>
  [[nodiscard]] constexpr bool compute_strides(layout<TargetRank>& result,
                                               std::int64_t item) const {
    const layout<dynamic_rank> old = squeezed();
    std::size_t source_axis = 0, target_axis = 0;
    while (source_axis < old.rank() && target_axis < result.rank()) {
      std::size_t source_end = source_axis + 1, target_end = target_axis + 1;
      std::int64_t source_count = old.shape[source_axis], target_count = result.shape[target_axis];
      while (source_count != target_count) {
        if (target_count < source_count) {
          target_count *= result.shape[target_end++];
        } else {
          source_count *= old.shape[source_end++];
        }
      }
      for (std::size_t axis = source_axis; axis + 1 < source_end; ++axis) {
        if (old.strides[axis] != old.shape[axis + 1] * old.strides[axis + 1]) return false;
      }
      result.strides[target_end - 1] = old.strides[source_end - 1];
      for (std::size_t axis = target_end - 1; axis > target_axis; --axis) {
        result.strides[axis - 1] = result.strides[axis] * result.shape[axis];
      }
      source_axis = source_end;
      target_axis = target_end;
    }
    // The remaining extents are 1, so their strides do not matter.
    for (; target_axis < result.rank(); ++target_axis) {
      result.strides[target_axis] = target_axis == 0 ? item : result.strides[target_axis - 1];
    }
    return true;
  }
  // The layout without the axes of extent 1.
  [[nodiscard]] constexpr layout<dynamic_rank> squeezed() const {
    layout<dynamic_rank> result;
    result.offset = offset;
    for (std::size_t axis = 0; axis < rank(); ++axis) {
      if (shape[axis] == 1) continue;
      result.shape.push_back(shape[axis]);
      result.strides.push_back(strides[axis]);
    }
    return result;
  }
};

}  // namespace v1
}  // namespace isthmus
