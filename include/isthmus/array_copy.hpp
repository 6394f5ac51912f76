// SPDX-License-Identifier: Apache-2.0
// Copies and fills of arrays: between any kinds and devices and plain host memory, with any strides
// on either side and with conversion of the elements.
//
//   isthmus::copy(a, b);                              // b is broadcast to a's shape
//   isthmus::copy(a, values);                         // a vector, span or std::array
//   isthmus::copy(values, a, isthmus::casting::unsafe);
//   isthmus::fill(a.view(isthmus::slice(1, 3)), 0.0f);
//   auto done = isthmus::copy_async(a, b, {.queue = queue, .after = ready});
//
// Plain memory has the array's shape, in row-major order; types like std::mdspan have their own
// shape. Arrays may overlap: the result is as if the source had been copied first. Throws
// invalid_argument, before anything is copied, for shapes that do not fit and for conversions that
// `casting` does not allow. The default is casting::same_kind.
//
// The blocking functions return when the copy has completed. The `_async` functions return an
// event. Plain memory must then live until the event completes (see `keep`); temporaries are
// therefore rejected. Arrays may be dropped at once. Copies and fills are ordered after the
// operations pending on either side, and before operations that are submitted later on either side.
//
// Cost: as for copies of bytes if nothing is converted and each side is contiguous; otherwise also
// the host's time to convert or to gather the elements. Thread-safe.
#pragma once

#include <isthmus/experimental.h>
#include <isthmus/array.hpp>
#include <isthmus/dyn_array.hpp>
#include <isthmus/fill.hpp>

#include <span>
#include <utility>

namespace isthmus {
inline namespace v1 {
namespace detail {

template <class>
struct is_array : std::false_type {};
template <class T, std::size_t N>
struct is_array<array<T, N>> : std::true_type {};
template <>
struct is_array<dyn_array> : std::true_type {};

}  // namespace detail

// An array<T, N> or a dyn_array.
template <class X>
concept any_array = detail::is_array<std::remove_cvref_t<X>>::value;

// Plain memory: a vector, array or span of elements.
template <class X>
concept host_elements =
    !any_array<X> && std::ranges::contiguous_range<X> && std::ranges::sized_range<X> &&
    element<std::remove_reference_t<std::ranges::range_reference_t<X>>>;

// std::mdspan and similar types.
template <class X>
concept host_mdspan =
    !any_array<X> && !host_elements<X> && requires(const std::remove_cvref_t<X>& x) {
      { x.data_handle() } -> std::convertible_to<const void*>;
      { x.extent(0) } -> std::integral;
      { x.stride(0) } -> std::integral;
      { std::remove_cvref_t<X>::rank() } -> std::convertible_to<std::size_t>;
      requires element<typename std::remove_cvref_t<X>::element_type>;
    };

// A source or destination of copy().
template <class X>
concept array_side = any_array<X> || host_elements<X> || host_mdspan<X>;

// An argument that an asynchronous operation may use after the call: not a temporary container.
template <class X>
concept outlives_call =
    !host_elements<X> || std::ranges::borrowed_range<X> || std::is_lvalue_reference_v<X>;

namespace detail {

// One side of a copy, as an argument of the C ABI. Borrows the memory and the layout of the object
// that it was constructed from.
class array_endpoint {
 public:
  template <class T, std::size_t N>
  explicit array_endpoint(const isthmus::array<T, N>& array)
      : is_constant_(std::is_const_v<T>), raw_(raw_of(array, dtype_of<T>)) {}
  explicit array_endpoint(const dyn_array& array)
      : is_constant_(array.read_only()), raw_(raw_of(array, array.type())) {}
  // Plain memory, which has the shape of the other side.
  template <host_elements Memory, class Other>
  array_endpoint(Memory&& memory, const Other& other)
      : array_endpoint(std::span(memory), other, 0) {}
  template <host_mdspan Memory>
  explicit array_endpoint(const Memory& memory)
      : is_constant_(std::is_const_v<typename Memory::element_type>) {
    using T = typename Memory::element_type;
    layout_.shape.resize(Memory::rank());
    layout_.strides.resize(Memory::rank());
    for (std::size_t axis = 0; axis < Memory::rank(); ++axis) {
      layout_.shape[axis] = static_cast<std::int64_t>(memory.extent(axis));
      layout_.strides[axis] =
          static_cast<std::int64_t>(memory.stride(axis)) * static_cast<std::int64_t>(sizeof(T));
    }
    set_memory(memory.data_handle(), dtype_of<T>);
  }
  array_endpoint(const array_endpoint&) = delete;
  array_endpoint& operator=(const array_endpoint&) = delete;
  ~array_endpoint() = default;

  [[nodiscard]] const isthmus_array_t* raw() const noexcept { return &raw_; }
  void require_writable() const {
    if (is_constant_) {
      raise(status::read_only, "this array is read-only and cannot be written");
    }
  }

 private:
  template <class T, std::size_t Extent, class Other>
  array_endpoint(std::span<T, Extent> memory, const Other& other, int)
      : is_constant_(std::is_const_v<T>) {
    if (memory.size() != other.size()) {
      raise(status::invalid_argument, "cannot copy between " + std::to_string(memory.size()) +
                                          " elements and an array of shape " +
                                          to_string(other.shape()) + ", which has " +
                                          std::to_string(other.size()) + " elements");
    }
    layout_ = v1::layout<dynamic_rank>::dense(other.shape(), sizeof(T));
    set_memory(memory.data(), dtype_of<T>);
  }
  template <class Array>
  [[nodiscard]] static isthmus_array_t raw_of(const Array& array, dtype type) {
    return {{array.buffer().get(), nullptr, array.byte_offset()},
            static_cast<isthmus_dtype_t>(type),
            array.shape().size(),
            array.shape().data(),
            array.strides().data()};
  }
  void set_memory(const void* memory, dtype type) noexcept {
    raw_ = {{nullptr, const_cast<void*>(memory), 0},
            static_cast<isthmus_dtype_t>(type),
            layout_.rank(),
            layout_.shape.data(),
            layout_.strides.data()};
  }

  bool is_constant_;
  v1::layout<dynamic_rank> layout_{};
  isthmus_array_t raw_{};
};

template <class Side, class Other>
[[nodiscard]] array_endpoint endpoint_of(Side& side, const Other& other) {
  if constexpr (host_elements<Side>) {
    return array_endpoint(side, other);
  } else {
    return array_endpoint(side);
  }
}

template <class X>
inline constexpr bool holds_constants = false;
template <class T, std::size_t N>
inline constexpr bool holds_constants<array<T, N>> = std::is_const_v<T>;
template <host_elements X>
inline constexpr bool holds_constants<X> =
    std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<X>>>;
template <host_mdspan X>
inline constexpr bool holds_constants<X> = std::is_const_v<typename X::element_type>;

template <class To>
constexpr void require_mutable() noexcept {
  using plain = std::remove_reference_t<To>;
  static_assert(!holds_constants<plain> && !holds_constants<std::remove_const_t<plain>>,
                "the destination's elements are const");
}

// Calls the C ABI and waits for the operation, or returns its event.
template <bool Blocks, class Call>
auto start(isthmus::operation& operation, Call call) {
  if constexpr (Blocks) {
    run(operation, nullptr, call);
  } else {
    return run_async(operation, call);
  }
}
template <bool Blocks, class To, class From>
auto copy_arrays(To& target, From& source, isthmus::casting casting,
                 isthmus::operation& operation) {
  require_mutable<To>();
  const array_endpoint target_endpoint = endpoint_of(target, source);
  const array_endpoint source_endpoint = endpoint_of(source, target);
  target_endpoint.require_writable();
  const queue_choice queue = operation.queue;
  return start<Blocks>(operation, [&](const isthmus_operation_t* raw, isthmus_event_t** event) {
    return isthmus_copy_array(queue.get(), target_endpoint.raw(), source_endpoint.raw(),
                              static_cast<isthmus_casting_t>(casting), raw, event);
  });
}
template <bool Blocks, class Array, class Value>
auto fill_array(const Array& target, const Value& value, isthmus::casting casting,
                isthmus::operation& operation) {
  require_mutable<Array>();
  const array_endpoint target_endpoint(target);
  target_endpoint.require_writable();
  const queue_choice queue = operation.queue;
  return start<Blocks>(operation, [&](const isthmus_operation_t* raw, isthmus_event_t** event) {
    return isthmus_fill_array(queue.get(), target_endpoint.raw(), &value,
                              static_cast<isthmus_dtype_t>(dtype_of<Value>),
                              static_cast<isthmus_casting_t>(casting), raw, event);
  });
}

template <class Value>
inline constexpr bool is_nonbool_integer =
    std::is_integral_v<Value> && !std::is_same_v<Value, bool>;

// Fills with a value without a casting rule: an integer is accepted by every integer dtype that can
// represent it.
template <bool Blocks, class Value>
auto fill_checked(const dyn_array& target, const Value& value, isthmus::operation& operation) {
  return visit(target.type(), [&]<class T>() {
    if constexpr (is_nonbool_integer<Value> && is_nonbool_integer<T>) {
      if (!std::in_range<T>(+value)) {
        raise(status::out_of_range, std::to_string(+value) + " does not fit in " +
                                        std::string(name(target.type())) + ", whose range is " +
                                        std::to_string(+std::numeric_limits<T>::min()) + " to " +
                                        std::to_string(+std::numeric_limits<T>::max()));
      }
      return fill_array<Blocks>(target, static_cast<T>(value), casting::no, operation);
    } else {
      return fill_array<Blocks>(target, value, casting::same_kind, operation);
    }
  });
}

}  // namespace detail

// Copies `source` to `target`, of which at least one is an array. A casting rule must have the type
// `casting`: `{}` is not accepted.
template <array_side To, array_side From>
  requires(any_array<To> || any_array<From>)
void copy(To&& target, From&& source, isthmus::operation operation = {}) {
  detail::copy_arrays<true>(target, source, casting::same_kind, operation);
}
template <array_side To, array_side From, std::same_as<casting> Casting>
  requires(any_array<To> || any_array<From>)
void copy(To&& target, From&& source, Casting rule, isthmus::operation operation = {}) {
  detail::copy_arrays<true>(target, source, rule, operation);
}
template <array_side To, array_side From>
  requires((any_array<To> || any_array<From>) && outlives_call<To> && outlives_call<From>)
event copy_async(To&& target, From&& source, isthmus::operation operation = {}) {
  return detail::copy_arrays<false>(target, source, casting::same_kind, operation);
}
template <array_side To, array_side From, std::same_as<casting> Casting>
  requires((any_array<To> || any_array<From>) && outlives_call<To> && outlives_call<From>)
event copy_async(To&& target, From&& source, Casting rule, isthmus::operation operation = {}) {
  return detail::copy_arrays<false>(target, source, rule, operation);
}

// Sets every element to `value`, which is converted to T by the rules of C++.
template <class T, std::size_t N>
void fill(const array<T, N>& target, const std::type_identity_t<T>& value,
          isthmus::operation operation = {}) {
  detail::fill_array<true>(target, value, casting::no, operation);
}
template <class T, std::size_t N>
event fill_async(const array<T, N>& target, const std::type_identity_t<T>& value,
                 isthmus::operation operation = {}) {
  return detail::fill_array<false>(target, value, casting::no, operation);
}
// Sets every element to a value of any type, as `casting` allows. By default an integer is accepted
// by every integer dtype that can represent it, and throws out_of_range for the others; every other
// value follows same_kind.
template <std::same_as<dyn_array> Array, element Value>
void fill(const Array& target, const Value& value, isthmus::operation operation = {}) {
  detail::fill_checked<true>(target, value, operation);
}
template <std::same_as<dyn_array> Array, element Value, std::same_as<casting> Casting>
void fill(const Array& target, const Value& value, Casting rule,
          isthmus::operation operation = {}) {
  detail::fill_array<true>(target, value, rule, operation);
}
template <std::same_as<dyn_array> Array, element Value>
event fill_async(const Array& target, const Value& value, isthmus::operation operation = {}) {
  return detail::fill_checked<false>(target, value, operation);
}
template <std::same_as<dyn_array> Array, element Value, std::same_as<casting> Casting>
event fill_async(const Array& target, const Value& value, Casting rule,
                 isthmus::operation operation = {}) {
  return detail::fill_array<false>(target, value, rule, operation);
}

// True if an element of one array shares a byte with an element of the other. Exact up to a bound
// on the work; beyond it true if the extents intersect. False for freed and for empty arrays.
template <any_array One, any_array Other>
[[nodiscard]] bool overlaps(const One& one, const Other& other) {
  if (!one || !other) return false;
  return isthmus_arrays_overlap(detail::array_endpoint(one).raw(),
                                detail::array_endpoint(other).raw()) != 0;
}

}  // namespace v1
}  // namespace isthmus
