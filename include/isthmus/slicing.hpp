// SPDX-License-Identifier: Apache-2.0
// Keys that select a part of an array, as in NumPy: integers, slices, every, newaxis and ellipsis.
//
//   a.view(isthmus::slice(0, 10, 2), 3);         // a[0:10:2, 3]
//   a.view(isthmus::ellipsis, isthmus::newaxis); // a[..., None]
//   a[isthmus::slice(std::nullopt, std::nullopt, -1)];
//
// Negative numbers count from the end, and the ends of slices are clamped to the extent. An integer
// beyond the end throws out_of_range, a step of 0 invalid_argument. Unsigned numbers never count
// from the end: one that wrapped around lies beyond the end of any axis.
//
// Cost: some nanoseconds per axis. Thread safety: as plain values.
#pragma once

#include <isthmus/layout.hpp>

#include <optional>

namespace isthmus {
inline namespace v1 {

// An integer that selects one position along an axis.
template <class T>
concept array_index =
    std::integral<std::remove_cvref_t<T>> && !std::same_as<std::remove_cvref_t<T>, bool>;

namespace detail {

template <array_index Integer>
[[nodiscard]] constexpr std::int64_t signed_index(Integer index) noexcept {
  constexpr auto max = std::numeric_limits<std::int64_t>::max();
  if constexpr (std::is_unsigned_v<Integer> && sizeof(Integer) >= sizeof max) {
    return index > static_cast<Integer>(max) ? max : static_cast<std::int64_t>(index);
  } else {
    return static_cast<std::int64_t>(index);
  }
}

[[noreturn]] inline void raise_index(std::int64_t index, std::int64_t extent, std::size_t axis) {
  raise(status::out_of_range, "index " + std::to_string(index) + " is out of range for axis " +
                                  std::to_string(axis) + ", which has " + std::to_string(extent) +
                                  " elements");
}
// The position of an index outside of [0, extent): a negative index counts from the end. Throws
// out_of_range.
[[nodiscard]] constexpr std::int64_t normalize_negative_index(std::int64_t index,
                                                              std::int64_t extent,
                                                              std::size_t axis) {
  if (index >= 0 || index < -extent) raise_index(index, extent, axis);
  return index + extent;
}
// The position of an index along an axis, from its start. Throws out_of_range.
[[nodiscard]] constexpr std::int64_t normalize_index(std::int64_t index, std::int64_t extent,
                                                     std::size_t axis) {
  if (static_cast<std::uint64_t>(index) < static_cast<std::uint64_t>(extent)) [[likely]]
    return index;
  return normalize_negative_index(index, extent, axis);
}

}  // namespace detail

// The start or the end of a slice; nullopt: the corresponding end of the axis, depending on the
// sign of the step.
class slice_end {
 public:
  constexpr slice_end(std::nullopt_t = std::nullopt) noexcept {}
  template <array_index Integer>
  constexpr slice_end(Integer index) noexcept : index_(detail::signed_index(index)) {}
  template <array_index Integer>
  constexpr slice_end(const std::optional<Integer>& index) noexcept {
    if (index) index_ = detail::signed_index(*index);
  }
  [[nodiscard]] constexpr bool is_open() const noexcept { return !index_; }
  // The position along an axis. Precondition: not open.
  [[nodiscard]] constexpr std::int64_t resolve(std::int64_t extent, std::int64_t lowest,
                                               std::int64_t highest) const noexcept {
    return std::clamp(*index_ < 0 ? *index_ + extent : *index_, lowest, highest);
  }

 private:
  std::optional<std::int64_t> index_;
};

// Every `step`-th element from `first` up to, but not including, `last`.
class slice {
 public:
  constexpr slice() noexcept = default;
  constexpr slice(slice_end first, slice_end last, std::int64_t step = 1)
      : first_(first), last_(last), step_(step) {
    if (step == 0) raise(status::invalid_argument, "the step of a slice cannot be 0");
  }

  // The elements of an axis that a slice selects.
  struct part {
    std::int64_t first;
    std::int64_t count;
    std::int64_t step;
  };
  // For an axis of `extent` elements, by Python's rules.
  [[nodiscard]] constexpr part resolve(std::int64_t extent) const noexcept {
    const bool down = step_ < 0;
    const std::int64_t lowest = down ? -1 : 0;
    const std::int64_t highest = down ? extent - 1 : extent;
    const auto clamp_end = [&](const slice_end& end, std::int64_t default_end) {
      return end.is_open() ? default_end : end.resolve(extent, lowest, highest);
    };
    const std::int64_t first = clamp_end(first_, down ? highest : lowest);
    const std::int64_t last = clamp_end(last_, down ? lowest : highest);
    const std::int64_t distance = down ? first - last : last - first;
    if (distance <= 0) return {0, 0, step_};
    const auto step_size =
        down ? 0 - static_cast<std::uint64_t>(step_) : static_cast<std::uint64_t>(step_);
    // The division takes as long as the rest of this function.
    const auto count =
        step_size == 1
            ? distance
            : static_cast<std::int64_t>((static_cast<std::uint64_t>(distance) - 1) / step_size + 1);
    return {first, count, count == 1 ? 1 : step_};
  }

 private:
  slice_end first_;
  slice_end last_;
  std::int64_t step_ = 1;
};

struct every_t {};
struct newaxis_t {};
struct ellipsis_t {};
inline constexpr every_t every{};        // all of one axis
inline constexpr newaxis_t newaxis{};    // an additional axis of extent 1
inline constexpr ellipsis_t ellipsis{};  // all axes that no other key selects

// A key of array::view().
template <class T>
concept array_key = array_index<T> || std::same_as<std::remove_cvref_t<T>, slice> ||
                    std::same_as<std::remove_cvref_t<T>, every_t> ||
                    std::same_as<std::remove_cvref_t<T>, newaxis_t> ||
                    std::same_as<std::remove_cvref_t<T>, ellipsis_t>;

namespace detail {

template <class Key, class... Others>
inline constexpr std::size_t count_of =
    (std::size_t{std::same_as<Key, std::remove_cvref_t<Others>>} + ... + 0);
template <class... Keys>
inline constexpr std::size_t integers_of = (std::size_t{array_index<Keys>} + ... + 0);
// The number of axes that the keys consume, without an ellipsis.
template <class... Keys>
inline constexpr std::size_t axes_used =
    sizeof...(Keys) - count_of<newaxis_t, Keys...> - count_of<ellipsis_t, Keys...>;

// The rank of the view that `Keys` select from an array of rank `Rank`.
template <std::size_t Rank, class... Keys>
inline constexpr std::size_t rank_of_view =
    Rank == dynamic_rank ? dynamic_rank
                         : Rank - integers_of<Keys...> + count_of<newaxis_t, Keys...>;

// Builds the layout of a view, one key at a time. `rank`: that of the result. `used`: the number of
// axes of the source that the keys consume, without an ellipsis.
template <std::size_t Old, std::size_t New>
class slicer {
 public:
  constexpr slicer(const layout<Old>& source_layout, layout<New>& result, std::size_t rank,
                   std::size_t used)
      : source_(source_layout), result_(result), remaining_(source_layout.rank() - used) {
    result_.shape.resize(rank);
    result_.strides.resize(rank);
    result_.offset = source_layout.offset;
  }

  template <array_index Integer>
  constexpr void apply(Integer index) {
    const std::int64_t position = normalize_index(signed_index(index), source_.shape[axis_], axis_);
    result_.offset += position * source_.strides[axis_++];
  }
  constexpr void apply(const slice& key) {
    const slice::part part = key.resolve(source_.shape[axis_]);
    result_.offset += part.first * source_.strides[axis_];
    append_axis(part.count,
                part.count <= 1 ? source_.strides[axis_] : part.step * source_.strides[axis_]);
    ++axis_;
  }
  constexpr void apply(every_t) {
    append_axis(source_.shape[axis_], source_.strides[axis_]);
    ++axis_;
  }
  constexpr void apply(newaxis_t) { append_axis(1, 0); }
  constexpr void apply(ellipsis_t) {
    for (; remaining_ != 0; --remaining_) apply(every);
  }
  // The axis of the source that the next key selects from, unless that is newaxis.
  [[nodiscard]] constexpr std::size_t next_axis() const noexcept { return axis_; }
  // Selects all elements along the axes without a key.
  constexpr void finish() {
    apply(ellipsis);
    // An empty view must not start outside of the memory.
    if (result_.is_empty()) result_.offset = source_.offset;
  }

 private:
  constexpr void append_axis(std::int64_t extent, std::int64_t stride) noexcept {
    result_.shape[out_] = extent;
    result_.strides[out_++] = stride;
  }

  const layout<Old>& source_;
  layout<New>& result_;
  std::size_t remaining_;
  std::size_t axis_ = 0;
  std::size_t out_ = 0;
};

template <std::size_t Rank, std::size_t New, class... Keys>
constexpr void slice_into(layout<New>& result, const layout<Rank>& source_layout,
                          const Keys&... keys) {
  constexpr std::size_t used = axes_used<Keys...>;
  static_assert(count_of<ellipsis_t, Keys...> <= 1, "an index can have at most one ellipsis");
  if constexpr (Rank == dynamic_rank) {
    if (used > source_layout.rank()) {
      raise(status::invalid_argument, std::to_string(used) + " indices for an array of " +
                                          std::to_string(source_layout.rank()) + " axes");
    }
  } else {
    static_assert(used <= Rank, "more indices than the array has axes");
  }
  slicer<Rank, New> builder(
      source_layout, result,
      source_layout.rank() - integers_of<Keys...> + count_of<newaxis_t, Keys...>, used);
  (builder.apply(keys), ...);
  builder.finish();
}
template <std::size_t Rank, class... Keys>
[[nodiscard]] constexpr auto sliced(const layout<Rank>& source_layout, const Keys&... keys) {
  layout<rank_of_view<Rank, Keys...>> result;
  slice_into(result, source_layout, keys...);
  return result;
}

}  // namespace detail

}  // namespace v1
}  // namespace isthmus
