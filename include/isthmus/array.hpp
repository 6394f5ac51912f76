// SPDX-License-Identifier: Apache-2.0
// A typed, strided array: elements of T along N axes, in memory of any kind.
//
//   auto a = isthmus::zeros<float>({1000, 1000});                     // device memory, from a pool
//   auto b = isthmus::empty<float>({1000}, isthmus::kind::shared, {.queue = queue});
//   auto column = a.view(isthmus::every, 3);                          // no copy
//   isthmus::copy(column, values);                                    // array_copy.hpp
//   b(7) = 1.0f;                                                      // waits for the last writer
//
// Copies and views of an array are references to the same elements and keep the memory alive. The
// memory is released after the last of them has been dropped and the operations on it have
// completed. None of this blocks. An array of const T is read-only. array_make.hpp creates arrays.
//
// Cost: a view takes about 10 ns and does not allocate. An access to an element of shared or host
// memory takes 2 to 3 ns while nothing is pending on its buffer, and otherwise waits for the
// pending operations. Use host() in loops. Thread safety: one array object is like any plain value,
// its elements are like plain memory. The caller ensures that no thread calls buffer().free() while
// another one is inside an element access of the same buffer. Host views keep the memory alive
// regardless.
#pragma once

#include <isthmus/array_memory.hpp>
#include <isthmus/element.hpp>
#include <isthmus/host_array.hpp>
#include <isthmus/slicing.hpp>
#include <isthmus/submit.hpp>

namespace isthmus {
inline namespace v1 {

class dyn_array;

// A typed array of rank N. A default-constructed, moved-from or freed array is empty: it may be
// assigned to, tested, compared and destroyed.
template <class T, std::size_t N>
class array : public detail::array_base<N> {
  static_assert(element<T>,
                "an array's elements are bool, integers, float16, bfloat16, float, double, long "
                "double or std::complex: records and objects are not");
  using base = detail::array_base<N>;
  using base::layout_;
  using base::memory_;

 public:
  using element_type = T;
  using value_type = std::remove_const_t<T>;

  array() noexcept = default;
  // An array over a buffer: dense, in row-major order, from `byte_offset` on. Throws out_of_range
  // for more elements than the buffer holds, invalid_argument if elements of T would not be
  // aligned, read_only if the buffer is read-only and T is not const.
  array(v1::buffer memory, const axes<N>& shape, std::size_t byte_offset = 0)
      : array(std::move(memory),
              layout<N>::dense(shape, k_item, static_cast<std::int64_t>(byte_offset))) {}
  // The same with any layout: strides may be negative, 0, or leave gaps.
  template <std::same_as<v1::layout<N>> Layout>
  array(v1::buffer memory, const Layout& layout)
      : base(detail::array_memory(std::move(memory)), layout) {
    memory_.require(layout_, sizeof(T), alignof(T));
    if (memory_.read_only() && !std::is_const_v<T>) {
      raise(status::read_only, "this buffer is read-only: use an array of const T");
    }
  }
  // Converts an array of T to one of const T.
  template <class Other>
    requires(std::is_const_v<T> && std::same_as<Other, value_type>)
  array(const array<Other, N>& other) noexcept : base(other) {}

  [[nodiscard]] static constexpr dtype type() noexcept { return dtype_of<T>; }
  [[nodiscard]] static constexpr std::size_t rank() noexcept { return N; }
  [[nodiscard]] std::size_t nbytes() const noexcept { return this->size() * sizeof(T); }
  // The address of the first element, also of device memory, to be passed to kernels. NULL if there
  // are no elements or the memory was freed.
  [[nodiscard]] T* pointer() const noexcept { return reinterpret_cast<T*>(this->live_pointer()); }
  // The same, under the name of the standard library.
  [[nodiscard]] T* data() const noexcept { return pointer(); }
  // True if the elements are in row-major order without gaps.
  [[nodiscard]] bool is_contiguous() const noexcept { return layout_.is_contiguous(k_item); }
  // A buffer of exactly the array's bytes, for functions that take a buffer. It is writable if
  // buffer() is, even if T is const. Throws invalid_argument if the array has gaps.
  [[nodiscard]] v1::buffer bytes() const { return this->bytes_of(k_item); }

  // Waits for the operations that are pending on the array's bytes, on any queue. Errors of
  // operations are reported by their own events.
  void wait() const { this->wait_for(k_item); }
  // Waits likewise and returns a view through which the host may access the elements while the view
  // lives. Throws unsupported for device kind.
  [[nodiscard]] host_array_view<T, N> host() const {
    const auto range = layout_.byte_range(k_item);
    return host_array_view<T, N>(memory_.part(range.begin, range.end), layout_);
  }

  // One element, after the last operation on its buffer has ended. Negative indices count from the
  // end. Throws out_of_range. For elements of device memory see element.hpp.
  template <array_index... Index>
  [[nodiscard]] auto operator()(Index... index) const {
    static_assert(sizeof...(Index) == N, "one index for each axis");
    std::size_t axis = 0;
    std::int64_t offset = layout_.offset;
    ((offset += offset_along(detail::signed_index(index), axis++)), ...);
    return element_at(offset);
  }
  template <array_index Index>
    requires(N == 1)
  [[nodiscard]] auto operator[](Index index) const {
    return (*this)(index);
  }

  // A part of the array, or the array with more axes: see slicing.hpp. For several axes `a[i]` is
  // a.view(i).
  template <array_key... Keys>
  [[nodiscard]] auto view(const Keys&... keys) const {
    return with_layout(detail::sliced(layout_, keys...));
  }
  template <array_key Key>
    requires(N != 1 || !array_index<Key>)
  [[nodiscard]] auto operator[](const Key& key) const {
    return view(key);
  }
  // The array with its axes reversed, or in the given order. No copy.
  [[nodiscard]] array transpose() const { return with_layout(layout_.transposed()); }
  [[nodiscard]] array permute(const axes<N>& order) const {
    return with_layout(layout_.permuted(order));
  }
  // The elements, in row-major order, with another shape. One extent may be -1 and is then
  // computed. Throws invalid_argument if the new shape requires a copy; to_array(*this) creates
  // one.
  template <std::size_t M>
  [[nodiscard]] array<T, M> reshape(const axes<M>& shape) const {
    return with_layout(layout_.reshaped(shape, k_item));
  }
  template <std::size_t M>
  [[nodiscard]] array<T, M> reshape(const axis_size (&shape)[M]) const {
    return reshape(detail::axes_of(shape));
  }
  // The array broadcast to a shape, by NumPy's rules. Read-only, because one element may have
  // several indices.
  template <std::size_t M>
  [[nodiscard]] array<const T, M> broadcast_to(const axes<M>& shape) const {
    return array<const T, M>(memory_, layout_.broadcast_to(shape, k_item), detail::unchecked{});
  }
  template <std::size_t M>
  [[nodiscard]] array<const T, M> broadcast_to(const axis_size (&shape)[M]) const {
    return broadcast_to(detail::axes_of(shape));
  }
  // The same bytes as elements of U. The last axis is scaled and must have no gaps. Elements may be
  // read and written as either type; for host views see host_array.hpp.
  template <element U>
  [[nodiscard]] auto reinterpret() const {
    using other = std::conditional_t<std::is_const_v<T>, const U, U>;
    const auto view_layout = layout_.reinterpreted(k_item, sizeof(U));
    memory_.require(view_layout, sizeof(U), alignof(U));
    return array<other, N>(detail::array_memory(memory_), view_layout, detail::unchecked{});
  }

  // True if both refer to the same elements of the same buffer. Arrays without memory are equal.
  friend bool operator==(const array& a, const array& b) noexcept { return a.is_same_view(b); }

  // For use by the library only. Precondition: `layout` is valid in `memory`.
  array(detail::array_memory memory, const v1::layout<N>& layout, detail::unchecked) noexcept
      : base(std::move(memory), layout) {}

 private:
  friend class dyn_array;
  static constexpr auto k_item = static_cast<std::int64_t>(sizeof(T));

  template <std::size_t M>
  [[nodiscard]] array<T, M> with_layout(const v1::layout<M>& layout) const noexcept {
    return array<T, M>(memory_, layout, detail::unchecked{});
  }
  [[nodiscard]] std::int64_t offset_along(std::int64_t index, std::size_t axis) const {
    return detail::normalize_index(index, layout_.shape[axis], axis) * layout_.strides[axis];
  }
  [[nodiscard]] auto element_at(std::int64_t offset) const {
    const auto location = memory_.looks_idle() ? location_at(offset) : location_at_slow(offset);
    if constexpr (std::is_const_v<T>) {
      return element_reference<value_type>(location).get();
    } else {
      return element_reference<T>(location);
    }
  }
  [[nodiscard]] detail::element_location location_at(std::int64_t offset) const noexcept {
    return {memory_.start() + offset, nullptr, 0};
  }
  // The slow path: device memory, or a buffer that may have pending operations. Out of line, so
  // that the common path stays short.
  [[nodiscard, gnu::noinline, gnu::cold]] detail::element_location location_at_slow(
      std::int64_t offset) const {
    if (this->is_device()) {
      detail::require_scalar();
      return {nullptr, memory_.buffer().get(), static_cast<std::size_t>(offset)};
    }
    if (!memory_.idle()) memory_.wait_for(offset, offset + k_item);
    return location_at(offset);
  }
};

namespace detail {

template <class T, std::size_t N>
struct submitted_memory<array<T, N>> {
  static constexpr bool is_supported = true;
  [[nodiscard]] static buffer memory(const array<T, N>& argument) { return argument.bytes(); }
  [[nodiscard]] static std::span<T> view(const isthmus_view_t& raw) noexcept {
    return {static_cast<T*>(raw.data), raw.nbytes / sizeof(T)};
  }
};

}  // namespace detail

}  // namespace v1
}  // namespace isthmus
