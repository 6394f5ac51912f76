// SPDX-License-Identifier: Apache-2.0
// Creation of arrays, and copies of arrays to the host.
//
//   auto a = isthmus::empty<float>({2, 3});                          // device memory, from a pool
//   auto b = isthmus::full<int>(10, 7, isthmus::kind::host);         // one axis of 10
//   auto c = isthmus::to_array(values, {2, 3});                      // a copy of a vector
//   auto f = isthmus::to_array({1.f, 2.f, 3.f});                     // one axis of 3
//   auto d = isthmus::like(c, isthmus::kind::shared);                // of c's shape and type
//   std::vector<float> back = isthmus::to_vector(c);
//   auto e = isthmus::zeros(isthmus::dtype::int8, {2, 3});           // a dtype known at run time
//
// For arrays that are freed at the end of a scope or function see scratch.hpp.
//
// Throws invalid_argument for negative extents and for more bytes than memory can hold,
// out_of_memory, and unsupported for a kind that the device lacks. Cost: one pool allocation, 10 to
// 100 ns. Functions that also fill or copy wait until the fill or copy has completed. Thread-safe.
#pragma once

#include <isthmus/array_copy.hpp>

#include <algorithm>
#include <vector>

namespace isthmus {
inline namespace v1 {

namespace detail {

template <std::size_t N>
  requires(N != dynamic_rank)
[[nodiscard]] constexpr axes<N> as_axes(const axes<N>& shape) noexcept {
  return shape;
}
template <array_index Count>
[[nodiscard]] constexpr axes<1> as_axes(Count count) {
  return {count};
}

template <class T, any_array Array>
[[nodiscard]] std::vector<T> copy_to_vector(const Array& source) {
  if constexpr (std::is_same_v<T, bool>) {
    std::vector<unsigned char> bytes(source.size());
    copy(bytes, source, casting::safe);
    std::vector<bool> result(bytes.size());
    std::transform(bytes.begin(), bytes.end(), result.begin(), [](auto byte) { return byte != 0; });
    return result;
  } else {
    std::vector<T> result(source.size());
    copy(result, source, casting::no);
    return result;
  }
}

}  // namespace detail

// A shape: extents, or the number of elements of a single axis. Extents may also be passed in
// braces.
template <class X>
concept array_shape = requires(const X& shape) { detail::as_axes(shape); };
// The type of an array of elements of T with such a shape.
template <class T, array_shape Shape>
using array_of = array<T, decltype(detail::as_axes(std::declval<const Shape&>()))::size()>;

// An array whose elements have undefined values.
template <class T, array_shape Shape>
[[nodiscard]] array_of<T, Shape> empty(const Shape& shape,
                                       isthmus::kind kind = isthmus::kind::device,
                                       const array_options& options = {}) {
  const auto dense = layout<array_of<T, Shape>::rank()>::dense(detail::as_axes(shape), sizeof(T));
  const auto nbytes = static_cast<std::size_t>(dense.count()) * sizeof(T);
  return {detail::array_memory(detail::allocate(nbytes, kind, options)), dense,
          detail::unchecked{}};
}
template <class T, std::size_t N>
[[nodiscard]] array<T, N> empty(const axis_size (&shape)[N],
                                isthmus::kind kind = isthmus::kind::device,
                                const array_options& options = {}) {
  return empty<T>(detail::axes_of(shape), kind, options);
}
// An array of elements that all equal `value`.
template <class T, array_shape Shape>
[[nodiscard]] array_of<T, Shape> full(const Shape& shape, const std::type_identity_t<T>& value,
                                      isthmus::kind kind = isthmus::kind::device,
                                      const array_options& options = {}) {
  auto result = empty<T>(shape, kind, options);
  fill(result, value);
  return result;
}
template <class T, std::size_t N>
[[nodiscard]] array<T, N> full(const axis_size (&shape)[N], const std::type_identity_t<T>& value,
                               isthmus::kind kind = isthmus::kind::device,
                               const array_options& options = {}) {
  return full<T>(detail::axes_of(shape), value, kind, options);
}
// An array of zeros.
template <class T, array_shape Shape>
[[nodiscard]] array_of<T, Shape> zeros(const Shape& shape,
                                       isthmus::kind kind = isthmus::kind::device,
                                       const array_options& options = {}) {
  return full<T>(shape, T{}, kind, options);
}
template <class T, std::size_t N>
[[nodiscard]] array<T, N> zeros(const axis_size (&shape)[N],
                                isthmus::kind kind = isthmus::kind::device,
                                const array_options& options = {}) {
  return zeros<T>(detail::axes_of(shape), kind, options);
}
// An array of ones.
template <class T, array_shape Shape>
[[nodiscard]] array_of<T, Shape> ones(const Shape& shape,
                                      isthmus::kind kind = isthmus::kind::device,
                                      const array_options& options = {}) {
  return full<T>(shape, static_cast<T>(1), kind, options);
}
template <class T, std::size_t N>
[[nodiscard]] array<T, N> ones(const axis_size (&shape)[N],
                               isthmus::kind kind = isthmus::kind::device,
                               const array_options& options = {}) {
  return ones<T>(detail::axes_of(shape), kind, options);
}

// The same for a dtype and a rank that are known at run time only. `value` is converted as by
// fill().
[[nodiscard]] inline dyn_array empty(dtype type, const axes<dynamic_rank>& shape,
                                     isthmus::kind kind = isthmus::kind::device,
                                     const array_options& options = {}) {
  const auto item = static_cast<std::int64_t>(nbytes(type));
  const auto dense = layout<dynamic_rank>::dense(shape, item);
  const auto bytes = static_cast<std::size_t>(dense.count() * item);
  return dyn_array(detail::allocate(bytes, kind, options), type, dense);
}
template <element Value>
[[nodiscard]] dyn_array full(dtype type, const axes<dynamic_rank>& shape, const Value& value,
                             isthmus::kind kind = isthmus::kind::device,
                             const array_options& options = {}) {
  auto result = empty(type, shape, kind, options);
  fill(result, value);
  return result;
}
[[nodiscard]] inline dyn_array zeros(dtype type, const axes<dynamic_rank>& shape,
                                     isthmus::kind kind = isthmus::kind::device,
                                     const array_options& options = {}) {
  return full(type, shape, false, kind, options);
}
[[nodiscard]] inline dyn_array ones(dtype type, const axes<dynamic_rank>& shape,
                                    isthmus::kind kind = isthmus::kind::device,
                                    const array_options& options = {}) {
  return full(type, shape, true, kind, options);
}

// An array of undefined elements with the shape, dtype and queue of `other`, and with the kind of
// `other` unless `kind` is given. The array is dense, whatever the strides of `other`.
template <class T, std::size_t N>
[[nodiscard]] array<std::remove_const_t<T>, N> like(const array<T, N>& other,
                                                    isthmus::kind kind = isthmus::kind::unknown) {
  const queue source_queue = other.queue();
  return empty<std::remove_const_t<T>>(
      other.shape(), kind == isthmus::kind::unknown ? other.kind() : kind, {.queue = source_queue});
}
template <std::same_as<dyn_array> Array>
[[nodiscard]] dyn_array like(const Array& other, isthmus::kind kind = isthmus::kind::unknown) {
  const queue source_queue = other.queue();
  return empty(other.type(), other.shape(), kind == isthmus::kind::unknown ? other.kind() : kind,
               {.queue = source_queue});
}
// As like(), filled with `value`, zeros or ones.
template <class T, std::size_t N>
[[nodiscard]] auto full_like(const array<T, N>& other,
                             const std::type_identity_t<std::remove_const_t<T>>& value,
                             isthmus::kind kind = isthmus::kind::unknown) {
  auto result = like(other, kind);
  fill(result, value);
  return result;
}
template <std::same_as<dyn_array> Array, element Value>
[[nodiscard]] dyn_array full_like(const Array& other, const Value& value,
                                  isthmus::kind kind = isthmus::kind::unknown) {
  auto result = like(other, kind);
  fill(result, value);
  return result;
}
template <any_array Array>
[[nodiscard]] auto zeros_like(const Array& other, isthmus::kind kind = isthmus::kind::unknown) {
  auto result = like(other, kind);
  fill(dyn_array(result), false);
  return result;
}
template <any_array Array>
[[nodiscard]] auto ones_like(const Array& other, isthmus::kind kind = isthmus::kind::unknown) {
  auto result = like(other, kind);
  fill(dyn_array(result), true);
  return result;
}

// An array with a copy of plain memory. It has one axis, or the given shape in row-major order.
// Throws invalid_argument if the numbers of elements differ.
template <host_elements Values, std::size_t N>
[[nodiscard]] auto to_array(const Values& values, const axes<N>& shape,
                            isthmus::kind kind = isthmus::kind::device,
                            const array_options& options = {}) {
  auto result = empty<std::remove_cv_t<std::ranges::range_value_t<Values>>>(shape, kind, options);
  copy(result, values, casting::no);
  return result;
}
template <host_elements Values, std::size_t N>
[[nodiscard]] auto to_array(const Values& values, const axis_size (&shape)[N],
                            isthmus::kind kind = isthmus::kind::device,
                            const array_options& options = {}) {
  return to_array(values, detail::axes_of(shape), kind, options);
}
template <host_elements Values>
[[nodiscard]] auto to_array(const Values& values, isthmus::kind kind = isthmus::kind::device,
                            const array_options& options = {}) {
  return to_array(values, axes<1>{std::ranges::size(values)}, kind, options);
}
// The same for elements in braces.
template <element T, std::size_t N>
[[nodiscard]] array<T, N> to_array(std::initializer_list<T> values, const axis_size (&shape)[N],
                                   isthmus::kind kind = isthmus::kind::device,
                                   const array_options& options = {}) {
  return to_array(std::span(values.begin(), values.size()), detail::axes_of(shape), kind, options);
}
template <element T>
[[nodiscard]] array<T, 1> to_array(std::initializer_list<T> values,
                                   isthmus::kind kind = isthmus::kind::device,
                                   const array_options& options = {}) {
  return to_array(std::span(values.begin(), values.size()), kind, options);
}
// A copy of a std::mdspan or a similar type, with the same shape.
template <host_mdspan Values>
[[nodiscard]] auto to_array(const Values& values, isthmus::kind kind = isthmus::kind::device,
                            const array_options& options = {}) {
  axes<Values::rank()> shape;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    shape[axis] = static_cast<std::int64_t>(values.extent(axis));
  }
  auto result = empty<std::remove_const_t<typename Values::element_type>>(shape, kind, options);
  copy(result, values, casting::no);
  return result;
}
// A dense copy of `other`, on the queue of `other`, and of the kind of `other` unless `kind` is
// given.
template <class T, std::size_t N>
[[nodiscard]] auto to_array(const array<T, N>& other, isthmus::kind kind = isthmus::kind::unknown) {
  auto result = like(other, kind);
  copy(result, other, casting::no);
  return result;
}

// All elements in row-major order, after the operations on them have ended. An array of bool is
// copied through a temporary vector with one byte per element.
template <class T, std::size_t N>
[[nodiscard]] std::vector<std::remove_const_t<T>> to_vector(const array<T, N>& source) {
  return detail::copy_to_vector<std::remove_const_t<T>>(source);
}
// The same for elements of exactly the type T. Throws invalid_argument if the array has another
// dtype.
template <element T, std::same_as<dyn_array> Array>
[[nodiscard]] std::vector<T> to_vector(const Array& source) {
  if (dtype_of<T> != source.type()) {
    raise(status::invalid_argument, "cannot copy to a vector of " + std::string(name(dtype_of<T>)) +
                                        " from an array of " + std::string(name(source.type())) +
                                        ": use the type of the array");
  }
  return detail::copy_to_vector<T>(source);
}

}  // namespace v1
}  // namespace isthmus
