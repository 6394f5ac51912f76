// SPDX-License-Identifier: Apache-2.0
// Printing of arrays. Only the elements that are shown are copied to the host.
//
//   std::cout << a;                                       // [[0.5   1]
//                                                         //  [  2 3.5]]
//   std::string text = isthmus::to_string(a, {.edge = 2});
//   std::cout << isthmus::describe(a);                    // array device (2, 2) float32, ...
//
// As in NumPy, an array of more than `threshold` elements is abbreviated: along each axis of more
// than 2 * `edge` elements the first and last `edge` are shown, with "..." in between.
// Floating-point numbers are written with the fewest digits that restore them exactly, and complex
// numbers in the format of streams. An array without memory, or a freed one, is printed as "(no
// memory)".
//
// Blocks until the operations pending on the shown elements have ended. Errors of operations are
// reported by their own events. Cost: one copy for each shown corner of the array. Thread-safe.
#pragma once

#include <isthmus/array_copy.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace isthmus {
inline namespace v1 {

// Options of to_string().
struct print_options {
  std::size_t threshold = 1000;  // arrays of up to this many elements are shown in full
  std::size_t edge = 3;          // elements shown at each end of an axis of a larger array
  std::size_t width = 75;        // characters per line
};

namespace detail {

template <class T>
[[nodiscard]] std::string shortest_digits(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    if (value != value) return "nan";  // of either sign
  }
  std::array<char, 64> text;
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

// For 16-bit numbers: tries 1 digit, then 2, until the text converts back to the same number.
template <class Half>
[[nodiscard]] std::string shortest_digits_of_half(Half value) {
  constexpr int k_max_digits = 5;
  const auto exact = static_cast<float>(value);
  for (int digits = 1; digits < k_max_digits; ++digits) {
    std::array<char, 64> text;
    const auto result = std::to_chars(text.data(), text.data() + text.size(), exact,
                                      std::chars_format::scientific, digits - 1);
    double parsed = 0;
    std::from_chars(text.data(), result.ptr, parsed);
    if (static_cast<float>(Half(static_cast<float>(parsed))) == exact)
      return shortest_digits(parsed);
  }
  return shortest_digits(exact);
}

template <class T>
[[nodiscard]] std::string text_of(T value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (requires { value.imag(); }) {
    return "(" + shortest_digits(value.real()) + "," + shortest_digits(value.imag()) + ")";
  } else if constexpr (!std::is_integral_v<T> && sizeof(T) == 2) {
    return shortest_digits_of_half(value);
  } else {
    return shortest_digits(value);
  }
}

// False also if the buffer was freed through another array on it.
[[nodiscard]] inline bool has_memory(const dyn_array& array) noexcept {
  return array && (array.empty() || array.pointer() != nullptr);
}

// The part of `array` with the `count` positions along `axis` from `begin` on.
[[nodiscard]] inline dyn_array slice_axis(const dyn_array& array, std::size_t axis,
                                          std::int64_t begin, std::int64_t count) {
  auto layout = array.layout();
  layout.offset += begin * layout.strides[axis];
  layout.shape[axis] = count;
  return {array.buffer(), array.type(), layout};
}

// Copies the corners of `source` to `target`, where they are adjacent.
inline void copy_corners(const dyn_array& target, const dyn_array& source, std::size_t axis = 0) {
  if (axis == target.rank()) {
    copy(target, source);
  } else if (target.extent(axis) == source.extent(axis)) {
    copy_corners(target, source, axis + 1);
  } else {
    const auto edge = target.extent(axis) / 2;
    copy_corners(slice_axis(target, axis, 0, edge), slice_axis(source, axis, 0, edge), axis + 1);
    copy_corners(slice_axis(target, axis, edge, edge),
                 slice_axis(source, axis, source.extent(axis) - edge, edge), axis + 1);
  }
}

// Builds the text of an array. Precondition: it has elements. A template, although `Array` is
// always dyn_array, so that programs that print no arrays do not compile the formats of all dtypes.
template <std::same_as<dyn_array> Array>
class array_formatter {
 public:
  array_formatter(const Array& array, const print_options& options)
      : array_(array), width_(options.width) {
    const auto edge = static_cast<std::int64_t>(std::min<std::size_t>(options.edge, k_max_edge));
    if (array.size() <= options.threshold) return;
    for (std::size_t axis = 0; axis < shown_shape_.size(); ++axis) {
      shown_shape_[axis] = std::min(shown_shape_[axis], 2 * edge);
    }
  }
  [[nodiscard]] std::string format() {
    copy_elements();
    for (const auto& element : elements_) max_length_ = std::max(max_length_, element.size());
    append_axis(0);
    return std::move(text_);
  }

 private:
  void copy_elements() {
    const auto dense = layout<dynamic_rank>::dense(shown_shape_, static_cast<std::int64_t>(item()));
    const auto count = static_cast<std::size_t>(dense.count());
    if (count == 0) return;
    const buffer memory(count * item(), kind::host, {.queue = queue::of(device("host"))});
    const dyn_array values(memory, array_.type(), dense);
    copy_corners(values, array_);
    visit(array_.type(), [&]<class T>() {
      const auto* const first = static_cast<const std::byte*>(values.pointer());
      for (std::size_t index = 0; index < count; ++index) {
        elements_.push_back(text_of(load<T>(first + index * sizeof(T))));
      }
    });
  }
  [[nodiscard]] std::size_t item() const { return nbytes(array_.type()); }

  void append_axis(std::size_t axis) {
    if (axis == shown_shape_.size()) return append_element(elements_[next_element_++]);
    const bool is_cut = shown_shape_[axis] != array_.extent(axis);
    text_ += '[';
    for (std::int64_t index = 0; index < shown_shape_[axis]; ++index) {
      if (index != 0) append_separator(axis);
      if (is_cut && index == shown_shape_[axis] / 2) {
        text_ += "...";
        append_separator(axis);
      }
      append_axis(axis + 1);
    }
    text_ += is_cut && shown_shape_[axis] == 0 ? "...]" : "]";
  }
  // Separates elements by a space, or by a new line if the current line is full. Parts with n axes
  // are separated by n new lines.
  void append_separator(std::size_t axis) {
    const auto inner = shown_shape_.size() - axis - 1;
    const bool is_full = text_.size() - line_start_ + 1 + max_length_ >= width_;
    if (inner == 0 && !is_full) {
      text_ += ' ';
      return;
    }
    text_.append(std::max<std::size_t>(inner, 1), '\n');
    line_start_ = text_.size();
    text_.append(axis + 1, ' ');
  }
  void append_element(std::string_view word) {
    text_.append(max_length_ - word.size(), ' ');
    text_ += word;
  }

  static constexpr std::size_t k_max_edge = std::size_t{1} << 30;

  const Array& array_;
  std::size_t width_;
  axes<dynamic_rank> shown_shape_ = array_.shape();
  std::vector<std::string> elements_;  // those shown, in row-major order
  std::size_t max_length_ = 0;         // length of the longest text
  std::size_t next_element_ = 0;
  std::string text_;
  std::size_t line_start_ = 0;  // of the current line in the text
};

}  // namespace detail

// The elements as text.
template <any_array Array>
[[nodiscard]] std::string to_string(const Array& array, const print_options& options = {}) {
  const dyn_array& untyped = array;  // a temporary, if the array is typed
  if (!detail::has_memory(untyped)) return "(no memory)";
  return untyped.empty() ? "[]" : detail::array_formatter(untyped, options).format();
}

template <class Traits, any_array Array>
std::basic_ostream<char, Traits>& operator<<(std::basic_ostream<char, Traits>& out,
                                             const Array& array) {
  return out << to_string(array);
}

// A line with kind, shape, dtype, size and device. Does not wait, and calls no driver.
[[nodiscard]] inline std::string describe(const dyn_array& array) {
  std::string text = "array " + std::string(name(array.kind())) + " " + to_string(array.shape()) +
                     " " + std::string(name(array.type()));
  if (!array.is_contiguous()) text += ", strides " + to_string(array.strides());
  text += ", " + std::to_string(array.nbytes()) + " bytes";
  if (!detail::has_memory(array)) return text + ", no memory";
  const auto info = array.device().info();
  return text + " on " + std::string(info.filter) + " \"" + std::string(info.name) + "\"" +
         (array.read_only() ? ", read-only" : "");
}

}  // namespace v1
}  // namespace isthmus
