// SPDX-License-Identifier: Apache-2.0
#pragma once
// The extents or strides of an array.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <span>
#include <utility>

namespace isthmus::python {

using NumberSpan = std::span<const std::int64_t>;

// Like a std::vector, but up to four numbers are stored inside: creating a view of an array takes
// less time than two allocations would.
class ArrayNumbers {
 public:
  ArrayNumbers() noexcept = default;
  explicit ArrayNumbers(std::size_t count, std::int64_t value = 0) { assign(count, value); }
  ArrayNumbers(std::initializer_list<std::int64_t> values) { assign(values.begin(), values.end()); }
  template <std::input_iterator Iterator>
  ArrayNumbers(Iterator first, Iterator last) {
    assign(first, last);
  }
  ArrayNumbers(const ArrayNumbers& other) { assign(other.begin(), other.end()); }
  ArrayNumbers(ArrayNumbers&& other) noexcept { move_from(other); }
  ArrayNumbers& operator=(const ArrayNumbers& other) {
    if (this != &other) {
      assign(other.begin(), other.end());
    }
    return *this;
  }
  ArrayNumbers& operator=(ArrayNumbers&& other) noexcept {
    if (this != &other) {
      drop();
      move_from(other);
    }
    return *this;
  }
  ~ArrayNumbers() { drop(); }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::int64_t* data() noexcept { return start_; }
  [[nodiscard]] const std::int64_t* data() const noexcept { return start_; }
  [[nodiscard]] std::int64_t* begin() noexcept { return start_; }
  [[nodiscard]] const std::int64_t* begin() const noexcept { return start_; }
  [[nodiscard]] std::int64_t* end() noexcept { return start_ + size_; }
  [[nodiscard]] const std::int64_t* end() const noexcept { return start_ + size_; }
  [[nodiscard]] std::int64_t& operator[](std::size_t i) noexcept { return start_[i]; }
  [[nodiscard]] std::int64_t operator[](std::size_t i) const noexcept { return start_[i]; }
  [[nodiscard]] std::int64_t& back() noexcept { return start_[size_ - 1]; }
  [[nodiscard]] std::int64_t back() const noexcept { return start_[size_ - 1]; }

  void push_back(std::int64_t value) {
    if (size_ == capacity_) {
      reserve(2 * capacity_);
    }
    start_[size_++] = value;
  }
  void pop_back() noexcept { --size_; }
  void insert(std::size_t before, std::int64_t value) {
    push_back(value);
    std::rotate(start_ + before, end() - 1, end());
  }
  void erase(std::size_t at) noexcept {
    std::move(start_ + at + 1, end(), start_ + at);
    --size_;
  }
  void reserve(std::size_t count) {
    if (count <= capacity_) {
      return;
    }
    auto* const larger = new std::int64_t[count];
    std::copy(begin(), end(), larger);
    drop();
    start_ = larger;
    capacity_ = count;
  }
  void assign(std::size_t count, std::int64_t value) {
    reserve(count);
    size_ = count;
    std::fill(begin(), end(), value);
  }
  template <std::input_iterator Iterator>
  void assign(Iterator first, Iterator last) {
    reserve(static_cast<std::size_t>(std::distance(first, last)));
    size_ = static_cast<std::size_t>(std::copy(first, last, start_) - start_);
  }

  friend bool operator==(const ArrayNumbers& a, const ArrayNumbers& b) noexcept {
    bool equal = a.size() == b.size();  // std::equal calls memcmp, which is slower for few numbers
    for (std::size_t i = 0; equal && i < a.size(); ++i) {
      equal = a[i] == b[i];
    }
    return equal;
  }

 private:
  static constexpr std::size_t k_inline_count = 4;

  void drop() noexcept {
    if (start_ != inline_) {
      delete[] start_;
    }
  }
  // Pre: the numbers of this object are no longer needed.
  void move_from(ArrayNumbers& other) noexcept {
    const bool is_inline = other.start_ == other.inline_;
    if (is_inline) {
      std::memcpy(inline_, other.inline_,
                  sizeof inline_);  // all four: a variable number would cost a call
    }
    start_ = is_inline ? inline_ : other.start_;
    size_ = std::exchange(other.size_, 0);
    capacity_ = std::exchange(other.capacity_, k_inline_count);
    other.start_ = other.inline_;
  }

  std::int64_t* start_ = inline_;
  std::size_t size_ = 0;
  std::size_t capacity_ = k_inline_count;
  std::int64_t inline_[k_inline_count];
};

}  // namespace isthmus::python
