// An array: elements of T along N axes in memory of any kind, typed and strided.
//
//   auto a = isthmus::zeros<float>({1000, 1000});                     // device memory, from a pool
//   auto b = isthmus::empty<float>({1000}, isthmus::kind::shared, {.on = queue});
//   auto column = a.view(isthmus::every, 3);                          // no copy
//   isthmus::copy(column, values);                                    // array_copy.hpp
//   b(7) = 1.0f;                                                      // waits for the last writer
//
// Copies and views of an array are references to the same elements: they keep its memory, which
// goes back behind the last work on it when the last of them has gone. None of that blocks. T
// const: only read. How arrays are made: array_make.hpp.
// Cost: a view some 10 ns and no allocation; an element of shared or host memory 2 to 3 ns while
// nothing is pending on its buffer, and as long as the work takes where something is. Loops take
// host() instead. Threads: any, on one array object as on any plain value; elements as plain
// memory. buffer().free() on one thread while another is inside an element access of the same
// buffer is the caller's to rule out; host views hold the memory against it.
#pragma once

#include <isthmus/array_memory.hpp>
#include <isthmus/element.hpp>
#include <isthmus/host_array.hpp>
#include <isthmus/slicing.hpp>

namespace isthmus {
inline namespace v1 {

class dyn_array;

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
  // Elements in a buffer, dense and rows first, from a byte on. Throws out_of_range for more than
  // it has, invalid_argument where T could not lie there, read_only where T must be const.
  array(v1::buffer in, const axes<N>& shape, std::size_t byte_offset = 0)
      : array(std::move(in),
              layout<N>::dense(shape, k_item, static_cast<std::int64_t>(byte_offset))) {}
  // The same, wherever they lie: distances may be negative, 0 or have gaps.
  template <std::same_as<v1::layout<N>> Layout>
  array(v1::buffer in, const Layout& where) : base(detail::array_memory(std::move(in)), where) {
    memory_.require(layout_, sizeof(T), alignof(T));
    if (memory_.read_only() && !std::is_const_v<T>) {
      raise(status::read_only, "this buffer is read-only: its arrays are of const elements");
    }
  }
  // An array to be read alone.
  template <class Other>
    requires(std::is_const_v<T> && std::same_as<Other, value_type>)
  array(const array<Other, N>& other) noexcept : base(other) {}

  [[nodiscard]] static constexpr dtype type() noexcept { return dtype_of<T>; }
  [[nodiscard]] static constexpr std::size_t rank() noexcept { return N; }
  [[nodiscard]] std::size_t nbytes() const noexcept { return this->size() * sizeof(T); }
  // Of the first element, of device memory too, for kernels: null of no elements, and of memory
  // that is freed.
  [[nodiscard]] T* pointer() const noexcept { return reinterpret_cast<T*>(this->live_pointer()); }
  [[nodiscard]] bool is_contiguous() const noexcept { return layout_.is_contiguous(k_item); }
  // Its bytes and no others, for functions and hints that take a buffer: which may be written to,
  // of const T too, where buffer() may. Throws invalid_argument where it has gaps.
  [[nodiscard]] v1::buffer bytes() const { return this->bytes_of(k_item); }

  // Waits for what is pending on its bytes, on any queue; errors are those of its events.
  void wait() const { this->wait_for(k_item); }
  // The same, and lets the host touch it while the view lives. Throws unsupported for device kind.
  [[nodiscard]] host_array_view<T, N> host() const {
    const auto all = layout_.reach(k_item);
    return host_array_view<T, N>(memory_.part(all.begin, all.end), layout_);
  }

  // One element, once the last work on its buffer has ended. Negative indices count from the end;
  // throws out_of_range. Of device memory: see element.hpp.
  template <array_index... Index>
  [[nodiscard]] auto operator()(Index... index) const {
    static_assert(sizeof...(Index) == N, "one index for each axis");
    std::size_t axis = 0;
    std::int64_t at = layout_.offset;
    ((at += way_to(detail::signed_index(index), axis++)), ...);
    return element_at(at);
  }
  template <array_index Index>
    requires(N == 1)
  [[nodiscard]] auto operator[](Index index) const {
    return (*this)(index);
  }

  // Some of it, or with axes more: see slicing.hpp. `a[i]` of several axes is a.view(i).
  template <array_key... Keys>
  [[nodiscard]] auto view(const Keys&... keys) const {
    return with(detail::sliced(layout_, keys...));
  }
  template <array_key Key>
    requires(N != 1 || !array_index<Key>)
  [[nodiscard]] auto operator[](const Key& key) const {
    return view(key);
  }
  // The axes the other way round, or in that order.
  [[nodiscard]] array transpose() const { return with(layout_.transposed()); }
  [[nodiscard]] array permute(const axes<N>& order) const { return with(layout_.permuted(order)); }
  // The elements, rows first, in another shape; -1: what is left. Throws invalid_argument where
  // that takes a copy, which to_array(*this) makes.
  template <std::size_t M>
  [[nodiscard]] array<T, M> reshape(const axes<M>& shape) const {
    return with(layout_.reshaped(shape, k_item));
  }
  template <std::size_t M>
  [[nodiscard]] array<T, M> reshape(const axis_size (&shape)[M]) const {
    return reshape(detail::axes_of(shape));
  }
  // As NumPy's, to be read alone: an element may lie at several indices.
  template <std::size_t M>
  [[nodiscard]] array<const T, M> broadcast_to(const axes<M>& shape) const {
    return array<const T, M>(memory_, layout_.broadcast_to(shape, k_item), detail::unchecked{});
  }
  template <std::size_t M>
  [[nodiscard]] array<const T, M> broadcast_to(const axis_size (&shape)[M]) const {
    return broadcast_to(detail::axes_of(shape));
  }
  // The same bytes as elements of U: the last axis is scaled, and must have no gaps. Elements may
  // be read and written as either; of host views see host_array.hpp.
  template <element U>
  [[nodiscard]] auto reinterpret() const {
    using other = std::conditional_t<std::is_const_v<T>, const U, U>;
    const auto where = layout_.reinterpreted(k_item, sizeof(U));
    memory_.require(where, sizeof(U), alignof(U));
    return array<other, N>(detail::array_memory(memory_), where, detail::unchecked{});
  }

  // The same elements, at the same place; arrays without memory are equal.
  friend bool operator==(const array& a, const array& b) noexcept { return a.is_at(b); }

  // Of a layout that is known to be right.
  array(detail::array_memory memory, const v1::layout<N>& where, detail::unchecked) noexcept
      : base(std::move(memory), where) {}

 private:
  friend class dyn_array;
  static constexpr auto k_item = static_cast<std::int64_t>(sizeof(T));

  template <std::size_t M>
  [[nodiscard]] array<T, M> with(const v1::layout<M>& where) const noexcept {
    return array<T, M>(memory_, where, detail::unchecked{});
  }
  [[nodiscard]] std::int64_t way_to(std::int64_t index, std::size_t axis) const {
    return detail::place_along(index, layout_.shape[axis], axis) * layout_.strides[axis];
  }
  [[nodiscard]] auto element_at(std::int64_t at) const {
    const auto where = memory_.looks_idle() ? place_at(at) : after_a_closer_look(at);
    if constexpr (std::is_const_v<T>) {
      return element_reference<value_type>(where).get();
    } else {
      return element_reference<T>(where);
    }
  }
  [[nodiscard]] detail::element_place place_at(std::int64_t at) const noexcept {
    return {memory_.start() + at, nullptr, 0};
  }
  // Of device memory, or of what is not known to be idle. Apart, so that the other way stays short.
  [[nodiscard, gnu::noinline, gnu::cold]] detail::element_place after_a_closer_look(
      std::int64_t at) const {
    if (this->is_device()) {
      detail::require_scalar();
      return {nullptr, memory_.buffer().get(), static_cast<std::size_t>(at)};
    }
    if (!memory_.idle()) memory_.wait_for(at, at + k_item);
    return place_at(at);
  }
};

static_assert(std::copyable<array<float, 2>> && std::equality_comparable<array<float, 2>>);
static_assert(std::is_nothrow_move_constructible_v<array<float, 2>>);
static_assert(std::convertible_to<array<float, 1>, array<const float, 1>>);
static_assert(!std::convertible_to<array<const float, 1>, array<float, 1>>);

}  // namespace v1
}  // namespace isthmus
