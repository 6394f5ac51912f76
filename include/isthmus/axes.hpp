// SPDX-License-Identifier: Apache-2.0
// One number per axis of an array, the outermost axis first: extents, or strides in bytes.
//
//   isthmus::axes<2> shape{rows, columns};
//   isthmus::axes<isthmus::dynamic_rank> any{2, 3, 4};        // up to 16 axes
//
// operator[] does not check its argument. Cost: no allocation; the numbers are stored inline.
// Thread safety: as plain values.
#pragma once

#include <isthmus/error.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>

namespace isthmus {
inline namespace v1 {

// The rank of axes, layouts and arrays whose number of axes is known at run time only.
inline constexpr std::size_t dynamic_rank = std::numeric_limits<std::size_t>::max();
// The maximum number of axes.
inline constexpr std::size_t max_axes = 16;

// A function argument that is a number of elements; converts from any integer type. Throws
// invalid_argument for unsigned values that do not fit int64.
struct axis_size {
  template <std::integral Integer>
  constexpr axis_size(Integer number) : value(static_cast<std::int64_t>(number)) {
    if (number > 0 && value < 0) {
      raise(status::invalid_argument,
            std::to_string(number) + " elements along an axis exceed the address space");
    }
  }
  std::int64_t value;
};

template <std::size_t Rank>
class axes {
  static_assert(Rank <= max_axes, "an array has at most 16 axes");

 public:
  constexpr axes() noexcept = default;
  template <std::convertible_to<axis_size>... Number>
    requires(sizeof...(Number) == Rank && Rank != 0)
  constexpr axes(Number... numbers) : numbers_{axis_size(numbers).value...} {}

  [[nodiscard]] static constexpr std::size_t size() noexcept { return Rank; }
  // Does nothing; for code that handles fixed and dynamic ranks.
  constexpr void resize(std::size_t) noexcept {}

  [[nodiscard]] constexpr const std::int64_t* data() const noexcept { return numbers_.data(); }
  [[nodiscard]] constexpr auto begin() const noexcept { return numbers_.begin(); }
  [[nodiscard]] constexpr auto end() const noexcept { return numbers_.end(); }
  [[nodiscard]] constexpr std::int64_t operator[](std::size_t axis) const noexcept {
    return numbers_[axis];
  }
  [[nodiscard]] constexpr std::int64_t& operator[](std::size_t axis) noexcept {
    return numbers_[axis];
  }
  friend constexpr bool operator==(const axes&, const axes&) noexcept = default;

 private:
  std::array<std::int64_t, Rank> numbers_{};
};

// A number of axes that is known at run time only, up to `max_axes`.
template <>
class axes<dynamic_rank> {
 public:
  constexpr axes() noexcept {}
  constexpr axes(std::initializer_list<axis_size> all) {
    resize(all.size());
    std::size_t axis = 0;
    for (const axis_size number : all) numbers_[axis++] = number.value;
  }
  template <std::size_t Rank>
    requires(Rank != dynamic_rank)
  constexpr axes(const axes<Rank>& other) {
    copy(other);
  }
  constexpr explicit axes(std::span<const std::int64_t> all) { copy(all); }
  // Copies only the numbers in use.
  constexpr axes(const axes& other) noexcept { copy(other); }
  constexpr axes& operator=(const axes& other) noexcept {
    copy(other);
    return *this;
  }
  constexpr ~axes() = default;

  [[nodiscard]] constexpr std::size_t size() const noexcept { return count_; }
  // Sets new numbers to 0. Throws invalid_argument for more than `max_axes`.
  constexpr void resize(std::size_t count) {
    if (count > max_axes) {
      raise(status::invalid_argument, "an array cannot have " + std::to_string(count) +
                                          " axes: the limit is " + std::to_string(max_axes));
    }
    for (std::size_t axis = count_; axis < count; ++axis) numbers_[axis] = 0;
    count_ = count;
  }

  [[nodiscard]] constexpr const std::int64_t* data() const noexcept { return numbers_.data(); }
  [[nodiscard]] constexpr const std::int64_t* begin() const noexcept { return data(); }
  [[nodiscard]] constexpr const std::int64_t* end() const noexcept { return data() + count_; }
  [[nodiscard]] constexpr std::int64_t operator[](std::size_t axis) const noexcept {
    return numbers_[axis];
  }
  [[nodiscard]] constexpr std::int64_t& operator[](std::size_t axis) noexcept {
    return numbers_[axis];
  }
  friend constexpr bool operator==(const axes& a, const axes& b) noexcept {
    bool same = a.count_ == b.count_;
    for (std::size_t axis = 0; same && axis < a.count_; ++axis) same = a[axis] == b[axis];
    return same;
  }

 private:
  template <class Numbers>
  constexpr void copy(const Numbers& other) {
    const std::size_t count = other.size();
    if (count > max_axes) resize(count);
    for (std::size_t axis = 0; axis < count; ++axis) numbers_[axis] = other[axis];
    count_ = count;
  }

  std::array<std::int64_t, max_axes> numbers_;  // only the first `count_` are initialized
  std::size_t count_ = 0;
};

// "(2, 3)", for messages.
template <std::size_t Rank>
[[nodiscard]] std::string to_string(const axes<Rank>& numbers) {
  std::string text = "(";
  for (std::size_t axis = 0; axis < numbers.size(); ++axis) {
    text += (axis == 0 ? "" : ", ") + std::to_string(numbers[axis]);
  }
  return text + (numbers.size() == 1 ? ",)" : ")");
}

namespace detail {

template <std::size_t Rank>
[[nodiscard]] constexpr axes<Rank> axes_of(const axis_size (&numbers)[Rank]) noexcept {
  axes<Rank> result;
  for (std::size_t axis = 0; axis < Rank; ++axis) result[axis] = numbers[axis].value;
  return result;
}

// The entry of an axis. Throws out_of_range if there is no such axis.
template <std::size_t Rank>
[[nodiscard]] constexpr std::int64_t number_at(const axes<Rank>& numbers, std::size_t axis) {
  if (axis >= numbers.size()) {
    raise(status::out_of_range, "no axis " + std::to_string(axis) + " in an array of " +
                                    std::to_string(numbers.size()) + " axes");
  }
  return numbers[axis];
}

}  // namespace detail

static_assert(sizeof(axes<3>) == 3 * sizeof(std::int64_t));
static_assert(axes<2>{3, 4}[1] == 4);

}  // namespace v1
}  // namespace isthmus
