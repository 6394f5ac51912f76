// SPDX-License-Identifier: Apache-2.0
// One number per axis of an array, the outermost axis first: extents, or strides in bytes.
//
//   isthmus::axes<2> shape{rows, columns};
//   isthmus::axes<isthmus::dynamic_rank> any{2, 3, 4};        // up to 64 axes
//
// operator[] does not check its argument. Cost: no allocation, except for more than four axes of a
// dynamic number. Thread safety: as plain values.
#pragma once

#include <isthmus/error.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

namespace isthmus {
inline namespace v1 {

// The rank of axes, layouts and arrays whose number of axes is known at run time only.
inline constexpr std::size_t dynamic_rank = std::numeric_limits<std::size_t>::max();
// The maximum number of axes, the same as in C and Python.
inline constexpr std::size_t max_axes = 64;

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
  static_assert(Rank <= max_axes, "an array has at most 64 axes");

 public:
  constexpr axes() noexcept = default;
  template <std::convertible_to<axis_size>... Number>
    requires(sizeof...(Number) == Rank && Rank != 0)
  constexpr axes(Number... numbers) : numbers_{axis_size(numbers).value...} {}

  [[nodiscard]] static constexpr std::size_t size() noexcept { return Rank; }
  // Does nothing; for code that handles fixed and dynamic ranks.
  constexpr void resize(std::size_t) noexcept {}

  [[nodiscard]] constexpr const std::int64_t* data() const noexcept { return numbers_.data(); }
  [[nodiscard]] constexpr std::int64_t* data() noexcept { return numbers_.data(); }
  [[nodiscard]] constexpr auto begin() const noexcept { return numbers_.begin(); }
  [[nodiscard]] constexpr auto end() const noexcept { return numbers_.end(); }
  [[nodiscard]] constexpr auto begin() noexcept { return numbers_.begin(); }
  [[nodiscard]] constexpr auto end() noexcept { return numbers_.end(); }
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

// A number of axes that is known at run time only, up to `max_axes`. Like a std::vector, except
// that up to `inline_axes` numbers need no allocation: creating a view of an array takes less time
// than two allocations. More numbers may throw std::bad_alloc, except in moves.
template <>
class axes<dynamic_rank> {
 public:
  static constexpr std::size_t inline_axes = 4;

  constexpr axes() noexcept {}
  constexpr axes(std::initializer_list<axis_size> all) {
    resize(all.size());
    std::size_t axis = 0;
    for (const axis_size number : all) start_[axis++] = number.value;
  }
  template <std::size_t Rank>
    requires(Rank != dynamic_rank)
  constexpr axes(const axes<Rank>& other) {
    assign(other.begin(), other.end());
  }
  constexpr explicit axes(std::span<const std::int64_t> all) { assign(all.begin(), all.end()); }
  constexpr axes(const axes& other) { assign(other.begin(), other.end()); }
  constexpr axes(axes&& other) noexcept { take(other); }
  constexpr axes& operator=(const axes& other) {
    if (this != &other) assign(other.begin(), other.end());
    return *this;
  }
  constexpr axes& operator=(axes&& other) noexcept {
    if (this != &other) {
      drop();
      take(other);
    }
    return *this;
  }
  constexpr ~axes() { drop(); }

  [[nodiscard]] constexpr std::size_t size() const noexcept { return size_; }
  [[nodiscard]] constexpr bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] constexpr const std::int64_t* data() const noexcept { return start_; }
  [[nodiscard]] constexpr std::int64_t* data() noexcept { return start_; }
  [[nodiscard]] constexpr const std::int64_t* begin() const noexcept { return start_; }
  [[nodiscard]] constexpr const std::int64_t* end() const noexcept { return start_ + size_; }
  [[nodiscard]] constexpr std::int64_t* begin() noexcept { return start_; }
  [[nodiscard]] constexpr std::int64_t* end() noexcept { return start_ + size_; }
  [[nodiscard]] constexpr std::int64_t operator[](std::size_t axis) const noexcept {
    return start_[axis];
  }
  [[nodiscard]] constexpr std::int64_t& operator[](std::size_t axis) noexcept {
    return start_[axis];
  }

  [[nodiscard]] constexpr std::int64_t back() const noexcept { return start_[size_ - 1]; }
  [[nodiscard]] constexpr std::int64_t& back() noexcept { return start_[size_ - 1]; }

  // The functions that add numbers throw invalid_argument for more than `max_axes`.

  // New numbers are 0.
  constexpr void resize(std::size_t count) {
    reserve(count);
    for (std::size_t axis = size_; axis < count; ++axis) start_[axis] = 0;
    size_ = count;
  }
  constexpr void push_back(std::int64_t number) {
    if (size_ == capacity_) grow();
    start_[size_++] = number;
  }
  // Inserts a number before that of `axis`, which may be size().
  constexpr void insert(std::size_t axis, std::int64_t number) {
    push_back(number);
    std::rotate(start_ + axis, end() - 1, end());
  }
  constexpr void erase(std::size_t axis) noexcept {
    std::copy(start_ + axis + 1, end(), start_ + axis);
    --size_;
  }
  template <std::forward_iterator Iterator>
  constexpr void assign(Iterator first, Iterator last) {
    const auto count = static_cast<std::size_t>(std::distance(first, last));
    reserve(count);
    std::copy(first, last, start_);
    size_ = count;
  }

  friend constexpr bool operator==(const axes& a, const axes& b) noexcept {
    bool same = a.size_ == b.size_;  // std::equal calls memcmp, which is slower for few numbers
    for (std::size_t axis = 0; same && axis < a.size_; ++axis) same = a[axis] == b[axis];
    return same;
  }

 private:
  constexpr void reserve(std::size_t count) {
    if (count <= capacity_) return;
    if (count > max_axes) raise_too_many(count);
    auto* const larger = new std::int64_t[count];
    std::copy(begin(), end(), larger);
    drop();
    start_ = larger;
    capacity_ = count;
  }
  constexpr void grow() {
    if (size_ == max_axes) raise_too_many(size_ + 1);
    reserve(std::min(2 * capacity_, max_axes));
  }
  [[noreturn]] static void raise_too_many(std::size_t count) {
    raise(status::invalid_argument, "an array cannot have " + std::to_string(count) +
                                        " axes: the limit is " + std::to_string(max_axes));
  }
  constexpr void drop() noexcept {
    if (start_ != inline_) delete[] start_;
  }
  // Precondition: this object's numbers are no longer needed.
  constexpr void take(axes& other) noexcept {
    const bool is_inline = other.start_ == other.inline_;
    if (is_inline && std::is_constant_evaluated()) {
      std::copy(other.begin(), other.end(), inline_);
    } else if (is_inline) {
      std::memcpy(inline_, other.inline_, sizeof inline_);  // all: a variable number costs a call
    }
    start_ = is_inline ? inline_ : other.start_;
    size_ = std::exchange(other.size_, 0);
    capacity_ = std::exchange(other.capacity_, inline_axes);
    other.start_ = other.inline_;
  }

  std::int64_t* start_ = inline_;  // `inline_`, or allocated
  std::size_t size_ = 0;
  std::size_t capacity_ = inline_axes;
  std::int64_t inline_[inline_axes];  // only the numbers in use are initialized
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

}  // namespace v1
}  // namespace isthmus
