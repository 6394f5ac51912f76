#pragma once
// What is said of each dimension of an array. Of the room for the most that there can be only what
// is in use is written and copied: most arrays have few.

#include <algorithm>
#include <array>
#include <cstddef>
#include <type_traits>

namespace isthmus {

constexpr std::size_t k_most_array_dimensions = 64;

template <class T>
class dimension_list {
 public:
  dimension_list() noexcept {}  // NOLINT(modernize-use-equals-default): which would write it all
  dimension_list(const dimension_list& other) noexcept : count_{other.count_} {
    std::copy_n(other.begin(), count_, begin());
  }
  dimension_list& operator=(const dimension_list& other) noexcept {
    if (this != &other) {
      count_ = other.count_;
      std::copy_n(other.begin(), count_, begin());
    }
    return *this;
  }
  ~dimension_list() = default;

  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  [[nodiscard]] T& operator[](std::size_t index) noexcept { return all_[index]; }
  [[nodiscard]] const T& operator[](std::size_t index) const noexcept { return all_[index]; }
  [[nodiscard]] const T& back() const noexcept { return all_[count_ - 1]; }
  [[nodiscard]] T* begin() noexcept { return all_.data(); }
  [[nodiscard]] T* end() noexcept { return all_.data() + count_; }
  [[nodiscard]] const T* begin() const noexcept { return all_.data(); }
  [[nodiscard]] const T* end() const noexcept { return all_.data() + count_; }

  // Pre: there is room.
  void append(const T& next) noexcept { all_[count_++] = next; }
  // `count` of them, each that value.
  void assign(std::size_t count, const T& value) noexcept {
    count_ = count;
    std::fill_n(begin(), count, value);
  }
  // Pre: `count` is no more than there are.
  void shorten(std::size_t count) noexcept { count_ = count; }

 private:
  static_assert(std::is_trivially_default_constructible_v<T>, "else all the room is written");

  std::size_t count_ = 0;
  std::array<T, k_most_array_dimensions> all_;
};

}  // namespace isthmus
