// SPDX-License-Identifier: Apache-2.0
// A host array view: the host's access to an array of shared or host kind, for loops.
//
//   const auto v = a.host();                       // waits for pending operations, once
//   for (std::int64_t i = 0; i < v.extent(0); ++i) v(i, 0) = 1;
//   for (float& x : v) x = 0;                      // arrays without gaps
//
// Its elements are plain objects of type T. Because of C++'s aliasing rules, bytes written through
// a view of one type must not be read through a view of another, and the bytes of a view of bool
// must be 0 or 1. Single elements (element.hpp) have neither restriction.
//
// The memory lives as long as the view, even if the array is freed. Operations that are submitted
// to a queue during this time do not wait for the view: the caller must synchronize them with
// accesses through the view. Movable, not copyable.
//
// Cost: an element access takes one multiplication per axis; `at` also checks its indices. Thread
// safety: the view is like any plain object.
#pragma once

#include <isthmus/array_memory.hpp>
#include <isthmus/slicing.hpp>

#include <span>
#include <utility>

namespace isthmus {
inline namespace v1 {

// A view of elements of T along `Rank` axes. array::host() returns one.
template <class T, std::size_t Rank>
class host_array_view {
 public:
  using element_type = T;

  host_array_view() noexcept = default;
  host_array_view(host_array_view&& other) noexcept
      : buffer_(std::move(other.buffer_)),
        data_(std::exchange(other.data_, nullptr)),
        layout_(std::exchange(other.layout_, {})) {}
  host_array_view& operator=(host_array_view&& other) noexcept {
    host_array_view temporary(std::move(other));
    std::swap(buffer_, temporary.buffer_);
    std::swap(data_, temporary.data_);
    std::swap(layout_, temporary.layout_);
    return *this;
  }
  host_array_view(const host_array_view&) = delete;
  host_array_view& operator=(const host_array_view&) = delete;
  ~host_array_view() {
    if (buffer_) isthmus_buffer_unexport(buffer_.get());
  }

  [[nodiscard]] const axes<Rank>& shape() const noexcept { return layout_.shape; }
  [[nodiscard]] const axes<Rank>& strides() const noexcept { return layout_.strides; }  // in bytes
  // The number of elements along an axis. Throws out_of_range if there is no such axis.
  [[nodiscard]] std::int64_t extent(std::size_t axis) const {
    return detail::number_at(shape(), axis);
  }
  [[nodiscard]] static constexpr std::size_t rank() noexcept { return Rank; }
  [[nodiscard]] std::size_t size() const noexcept {
    return data_ == nullptr ? 0 : static_cast<std::size_t>(layout_.count());
  }
  // The address of the element whose indices are all 0.
  [[nodiscard]] T* data() const noexcept { return data_; }
  // All elements in row-major order. Throws invalid_argument if there are gaps between them.
  [[nodiscard]] std::span<T> span() const {
    if (!layout_.is_contiguous(sizeof(T))) {
      raise(status::invalid_argument, "an array of shape " + to_string(shape()) + " and strides " +
                                          to_string(strides()) +
                                          " has gaps between its elements: access them by their "
                                          "indices, or copy the array with to_array");
    }
    return {data_, size()};
  }
  // The elements of span(), for loops and algorithms. Throw as span().
  [[nodiscard]] T* begin() const { return span().data(); }
  [[nodiscard]] T* end() const { return begin() + size(); }

  // An element. Indices are not checked: each must be at least 0 and below the extent of its axis.
  template <array_index... Index>
  [[nodiscard]] T& operator()(Index... index) const noexcept {
    static_assert(sizeof...(Index) == Rank, "one index for each axis");
    std::size_t axis = 0;
    std::int64_t bytes = 0;
    ((bytes += static_cast<std::int64_t>(index) * layout_.strides[axis++]), ...);
    return *reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(data_) +
                                 static_cast<std::uintptr_t>(bytes));
  }
  // The same with checks: throws out_of_range. Negative indices count from the end.
  template <array_index... Index>
  [[nodiscard]] T& at(Index... index) const {
    static_assert(sizeof...(Index) == Rank, "one index for each axis");
    std::size_t axis = 0;
    axes<Rank> indices;
    ((indices[axis] =
          detail::normalize_index(detail::signed_index(index), layout_.shape[axis], axis),
      ++axis),
     ...);
    return element_at(indices, std::make_index_sequence<Rank>());
  }

 private:
  template <class, std::size_t>
  friend class array;

  // Precondition: elements of T lie at `layout` in the buffer.
  host_array_view(isthmus::buffer buffer, const isthmus::layout<Rank>& layout) : layout_(layout) {
    void* start = nullptr;
    const auto bytes = layout.byte_range(sizeof(T));
    detail::check(isthmus_buffer_export(buffer.get(), &start));
    buffer_ = std::move(buffer);
    data_ =
        start == nullptr
            ? nullptr
            : reinterpret_cast<T*>(static_cast<std::byte*>(start) + (layout.offset - bytes.begin));
  }
  template <std::size_t... Axis>
  [[nodiscard]] T& element_at(const axes<Rank>& index,
                              std::index_sequence<Axis...>) const noexcept {
    return (*this)(index[Axis]...);
  }

  buffer buffer_;  // exactly the bytes from the first to the last element
  T* data_ = nullptr;
  layout<Rank> layout_{};
};

}  // namespace v1
}  // namespace isthmus
