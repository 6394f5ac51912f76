// How arrays are made, and made into the host's own.
//
//   auto a = isthmus::empty<float>({2, 3});                          // device memory, from a pool
//   auto b = isthmus::full<int>(10, 7, isthmus::kind::host);         // one axis of 10
//   auto c = isthmus::to_array(values, {2, 3});                      // a copy of a vector
//   auto d = isthmus::like(c, isthmus::kind::shared);                // of c's shape and type
//   std::vector<float> back = isthmus::to_vector(c);
//   float sum = isthmus::with_empty<float>({1000}, [](const auto& scratch) { ... });
//
// Throws invalid_argument for negative extents and for more bytes than memory can have,
// out_of_memory, unsupported for a kind that the device has not. Cost: a pool's allocation, some
// ten nanoseconds to 100; what also fills or copies waits for that. Threads: any.
#pragma once

#include <isthmus/array_copy.hpp>

namespace isthmus {
inline namespace v1 {

// Its elements hold whatever the memory held.
template <class T, std::size_t N>
[[nodiscard]] array<T, N> empty(const axes<N>& shape, kind of = kind::device,
                                const array_options& options = {}) {
  const auto where = layout<N>::dense(shape, sizeof(T));
  const auto nbytes = static_cast<std::size_t>(where.count()) * sizeof(T);
  return array<T, N>(detail::array_memory(detail::allocate(nbytes, of, options)), where,
                     detail::unchecked{});
}
template <class T, std::size_t N>
[[nodiscard]] array<T, N> full(const axes<N>& shape, const std::type_identity_t<T>& value,
                               kind of = kind::device, const array_options& options = {}) {
  auto made = empty<T>(shape, of, options);
  fill(made, value);
  return made;
}
template <class T, std::size_t N>
[[nodiscard]] array<T, N> zeros(const axes<N>& shape, kind of = kind::device,
                                const array_options& options = {}) {
  return full<T>(shape, T{}, of, options);
}
template <class T, std::size_t N>
[[nodiscard]] array<T, N> ones(const axes<N>& shape, kind of = kind::device,
                               const array_options& options = {}) {
  return full<T>(shape, static_cast<T>(1), of, options);
}

// The same with the shape in braces.
template <class T, std::size_t N>
[[nodiscard]] array<T, N> empty(const axis_size (&shape)[N], kind of = kind::device,
                                const array_options& options = {}) {
  return empty<T>(detail::axes_of(shape), of, options);
}
template <class T, std::size_t N>
[[nodiscard]] array<T, N> full(const axis_size (&shape)[N], const std::type_identity_t<T>& value,
                               kind of = kind::device, const array_options& options = {}) {
  return full<T>(detail::axes_of(shape), value, of, options);
}
template <class T, std::size_t N>
[[nodiscard]] array<T, N> zeros(const axis_size (&shape)[N], kind of = kind::device,
                                const array_options& options = {}) {
  return zeros<T>(detail::axes_of(shape), of, options);
}
template <class T, std::size_t N>
[[nodiscard]] array<T, N> ones(const axis_size (&shape)[N], kind of = kind::device,
                               const array_options& options = {}) {
  return ones<T>(detail::axes_of(shape), of, options);
}
// And of one axis.
template <class T, std::integral Count>
[[nodiscard]] array<T, 1> empty(Count count, kind of = kind::device,
                                const array_options& options = {}) {
  return empty<T>(axes<1>{count}, of, options);
}
template <class T, std::integral Count>
[[nodiscard]] array<T, 1> full(Count count, const std::type_identity_t<T>& value,
                               kind of = kind::device, const array_options& options = {}) {
  return full<T>(axes<1>{count}, value, of, options);
}
template <class T, std::integral Count>
[[nodiscard]] array<T, 1> zeros(Count count, kind of = kind::device,
                                const array_options& options = {}) {
  return zeros<T>(axes<1>{count}, of, options);
}
template <class T, std::integral Count>
[[nodiscard]] array<T, 1> ones(Count count, kind of = kind::device,
                               const array_options& options = {}) {
  return ones<T>(axes<1>{count}, of, options);
}

// Empty, of the same shape and type, on the same queue; of the same kind too where none is named.
template <class T, std::size_t N>
[[nodiscard]] array<std::remove_const_t<T>, N> like(const array<T, N>& other,
                                                    kind of = kind::unknown) {
  const queue on = other.queue();
  return empty<std::remove_const_t<T>>(other.shape(), of == kind::unknown ? other.kind() : of,
                                       {.on = on});
}

// A copy of plain memory, of one axis or of that shape, rows first.
template <host_elements Values, std::size_t N>
[[nodiscard]] auto to_array(const Values& values, const axes<N>& shape, kind of = kind::device,
                            const array_options& options = {}) {
  auto made = empty<std::remove_cv_t<std::ranges::range_value_t<Values>>>(shape, of, options);
  copy(made, values, casting::no);
  return made;
}
template <host_elements Values, std::size_t N>
[[nodiscard]] auto to_array(const Values& values, const axis_size (&shape)[N],
                            kind of = kind::device, const array_options& options = {}) {
  return to_array(values, detail::axes_of(shape), of, options);
}
template <host_elements Values>
[[nodiscard]] auto to_array(const Values& values, kind of = kind::device,
                            const array_options& options = {}) {
  return to_array(values, axes<1>{std::ranges::size(values)}, of, options);
}
// Of a std::mdspan and the like.
template <host_mdspan Values>
[[nodiscard]] auto to_array(const Values& values, kind of = kind::device,
                            const array_options& options = {}) {
  axes<Values::rank()> shape;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    shape[axis] = static_cast<std::int64_t>(values.extent(axis));
  }
  auto made = empty<std::remove_const_t<typename Values::element_type>>(shape, of, options);
  copy(made, values, casting::no);
  return made;
}
// Of another array, dense; of its kind and on its queue where none is named.
template <class T, std::size_t N>
[[nodiscard]] auto to_array(const array<T, N>& other, kind of = kind::unknown) {
  auto made = like(other, of);
  copy(made, other, casting::no);
  return made;
}

// All elements, rows first, once the work on them has ended.
template <class T, std::size_t N>
  requires(!std::same_as<std::remove_const_t<T>, bool>)
[[nodiscard]] std::vector<std::remove_const_t<T>> to_vector(const array<T, N>& from) {
  std::vector<std::remove_const_t<T>> made(from.size());
  copy(made, from, casting::no);
  return made;
}

// Calls `function` with an empty array whose memory goes back when it returns or throws: other
// arrays on it are closed then. Gives what it gives.
template <class T, std::size_t N, class Function>
decltype(auto) with_empty(const axes<N>& shape, Function&& function, kind of = kind::device,
                          const array_options& options = {}) {
  struct guard {
    array<T, N> held;
    ~guard() { held.buffer().free(); }
  };
  const guard scoped{empty<T>(shape, of, options)};
  return std::forward<Function>(function)(scoped.held);
}
template <class T, std::size_t N, class Function>
decltype(auto) with_empty(const axis_size (&shape)[N], Function&& function, kind of = kind::device,
                          const array_options& options = {}) {
  return with_empty<T>(detail::axes_of(shape), std::forward<Function>(function), of, options);
}
template <class T, std::integral Count, class Function>
decltype(auto) with_empty(Count count, Function&& function, kind of = kind::device,
                          const array_options& options = {}) {
  return with_empty<T>(axes<1>{count}, std::forward<Function>(function), of, options);
}

}  // namespace v1
}  // namespace isthmus
