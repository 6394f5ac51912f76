// SPDX-License-Identifier: Apache-2.0
#pragma once
// A list of fixed capacity with an entry for each dimension of an array. Only the entries in use
// are initialized and copied, because most arrays have few dimensions. Not thread-safe.

#include <algorithm>
#include <array>
#include <cstddef>
#include <type_traits>

#include "core/expects.hpp"

namespace isthmus {

constexpr std::size_t k_max_array_dimensions = 64;

template <class T>
class DimensionList {
 public:
  // NOLINTNEXTLINE(modernize-use-equals-default): `= default` would initialize all entries
  DimensionList() noexcept {}
  DimensionList(const DimensionList& other) noexcept : count_{other.count_} {
    std::copy_n(other.begin(), count_, begin());
  }
  DimensionList& operator=(const DimensionList& other) noexcept {
    if (this != &other) {
      count_ = other.count_;
      std::copy_n(other.begin(), count_, begin());
    }
    return *this;
  }
  ~DimensionList() = default;

  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  [[nodiscard]] T& operator[](std::size_t index) noexcept {
    ISTHMUS_EXPECTS(index < count_, index, count_);
    return entries_[index];
  }
  [[nodiscard]] const T& operator[](std::size_t index) const noexcept {
    ISTHMUS_EXPECTS(index < count_, index, count_);
    return entries_[index];
  }
  [[nodiscard]] const T& back() const noexcept {
    ISTHMUS_EXPECTS(count_ != 0);
    return entries_[count_ - 1];
  }
  [[nodiscard]] T* begin() noexcept { return entries_.data(); }
  [[nodiscard]] T* end() noexcept { return entries_.data() + count_; }
  [[nodiscard]] const T* begin() const noexcept { return entries_.data(); }
  [[nodiscard]] const T* end() const noexcept { return entries_.data() + count_; }

  void append(const T& entry) noexcept {
    ISTHMUS_EXPECTS(count_ < entries_.size());
    entries_[count_++] = entry;
  }
  // Sets the list to `count` copies of `value`.
  void assign(std::size_t count, const T& value) noexcept {
    ISTHMUS_EXPECTS(count <= entries_.size(), count);
    count_ = count;
    std::fill_n(begin(), count, value);
  }
  void shorten(std::size_t count) noexcept {
    ISTHMUS_EXPECTS(count <= count_, count, count_);
    count_ = count;
  }

 private:
  static_assert(std::is_trivially_default_constructible_v<T>,
                "otherwise all entries would be initialized");

  std::size_t count_ = 0;
  std::array<T, k_max_array_dimensions> entries_;
};

}  // namespace isthmus
