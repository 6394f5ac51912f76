// Data that does not fit at once, in pieces.
//
//   for (std::span<const float> batch : isthmus::batches(data, 1000)) {
//     auto on_device = isthmus::to_array(batch);
//     ...
//   }
//   isthmus::batches(a, 100, [](const auto& rows) { ... });       // 100 rows of an array at a time
//
// Pieces are views; the last one may be shorter. Cost: a view each. Threads: plain values.
#pragma once

#include <isthmus/array.hpp>

#include <iterator>
#include <ranges>
#include <span>

namespace isthmus {
inline namespace v1 {
namespace detail {

template <class T>
struct span_source {
  std::span<T> all;
  [[nodiscard]] std::size_t count() const noexcept { return all.size(); }
  [[nodiscard]] std::span<T> part(std::size_t first, std::size_t count) const noexcept {
    return all.subspan(first, count);
  }
};
template <class T, std::size_t N>
struct array_source {
  array<T, N> all;
  [[nodiscard]] std::size_t count() const noexcept {
    return static_cast<std::size_t>(all.extent(0));
  }
  [[nodiscard]] array<T, N> part(std::size_t first, std::size_t count) const {
    return all.view(
        slice(static_cast<std::int64_t>(first), static_cast<std::int64_t>(first + count)));
  }
};

}  // namespace detail

// A range of pieces of `size` elements, or rows, each.
template <class Source>
class batch_range : public std::ranges::view_base {
 public:
  // Throws invalid_argument for pieces of nothing.
  batch_range(Source from, std::size_t size) : from_(std::move(from)), size_(size) {
    if (size == 0) raise(status::invalid_argument, "batches of 0 elements: 1 or more can be");
  }

  class iterator {
   public:
    using iterator_concept = std::input_iterator_tag;
    using difference_type = std::ptrdiff_t;
    using value_type = decltype(std::declval<const Source&>().part(0, 0));

    iterator() noexcept = default;
    [[nodiscard]] value_type operator*() const {
      return of_->from_.part(at_, std::min(of_->size_, of_->from_.count() - at_));
    }
    iterator& operator++() noexcept {
      at_ += std::min(of_->size_, of_->from_.count() - at_);
      return *this;
    }
    void operator++(int) noexcept { ++*this; }
    bool operator==(std::default_sentinel_t) const noexcept { return at_ == of_->from_.count(); }

   private:
    friend class batch_range;
    explicit iterator(const batch_range& of) noexcept : of_(&of) {}
    const batch_range* of_ = nullptr;
    std::size_t at_ = 0;
  };

  [[nodiscard]] iterator begin() const noexcept { return iterator(*this); }
  [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }
  [[nodiscard]] std::size_t size() const noexcept {
    return from_.count() / size_ + (from_.count() % size_ != 0 ? 1 : 0);
  }

 private:
  Source from_;
  std::size_t size_;
};

template <class T>
[[nodiscard]] auto batches(std::span<T> data, std::size_t size) {
  return batch_range(detail::span_source<T>{data}, size);
}
// Of data that lives longer than the range.
template <std::ranges::contiguous_range Data>
  requires(std::ranges::borrowed_range<Data> || std::is_lvalue_reference_v<Data>)
[[nodiscard]] auto batches(Data&& data, std::size_t size) {
  return batches(std::span(data), size);
}
// Of the first axis.
template <class T, std::size_t N>
  requires(N != 0)
[[nodiscard]] auto batches(const array<T, N>& data, std::size_t size) {
  return batch_range(detail::array_source<T, N>{data}, size);
}
// Calls `function` with one after the other.
template <class Data, class Function>
void batches(Data&& data, std::size_t size, Function&& function) {
  for (auto&& each : batches(std::forward<Data>(data), size)) function(each);
}

}  // namespace v1
}  // namespace isthmus
