// Copies and fills of arrays: between any kinds, devices and plain memory of the host, with any
// strides on either side, converted on the way.
//
//   isthmus::copy(a, b);                              // b is broadcast to a's shape
//   isthmus::copy(a, values);                         // a vector, span or array of the same number
//   isthmus::copy(values, a, isthmus::casting::unsafe);
//   isthmus::fill(a.view(isthmus::slice(1, 3)), 0.0f);
//   auto done = isthmus::copy_async(a, b, {}, {.on = queue, .after = ready});
//
// Plain memory has the array's shape, rows first; what is like a std::mdspan has its own. Arrays
// may overlap: it is as if the source had been set aside. Throws invalid_argument for shapes that
// do not fit and changes of type that `casting` does not allow, before anything moves.
// Blocking forms end when the copy has; the others give an event, and memory of the caller's lives
// until then (`keep`). Arrays may go at once. Both come behind what is pending on either side and
// before what is put there later. Cost: as copies of bytes where nothing is converted and each side
// is one run; else also the host's time for what it converts or gathers. Threads: any.
#pragma once

#include <isthmus/array.hpp>
#include <isthmus/dyn_array.hpp>
#include <isthmus/fill.hpp>

#include <ranges>

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

template <class X>
concept any_array = detail::is_array<std::remove_cvref_t<X>>::value;

// Plain memory: a vector, array or span of elements.
template <class X>
concept host_elements =
    !any_array<X> && std::ranges::contiguous_range<X> && std::ranges::sized_range<X> &&
    element<std::remove_reference_t<std::ranges::range_reference_t<X>>>;

// std::mdspan and the like.
template <class X>
concept host_mdspan =
    !any_array<X> && !host_elements<X> && requires(const std::remove_cvref_t<X>& x) {
      { x.data_handle() } -> std::convertible_to<const void*>;
      { x.extent(0) } -> std::integral;
      { x.stride(0) } -> std::integral;
      { std::remove_cvref_t<X>::rank() } -> std::convertible_to<std::size_t>;
      requires element<typename std::remove_cvref_t<X>::element_type>;
    };

template <class X>
concept array_side = any_array<X> || host_elements<X> || host_mdspan<X>;

namespace detail {

// One side of a copy as the C ABI takes it; borrows what it is made of.
class array_place {
 public:
  template <class T, std::size_t N>
  explicit array_place(const array<T, N>& of)
      : is_constant_(std::is_const_v<T>), raw_(raw_of(of, dtype_of<T>)) {}
  explicit array_place(const dyn_array& of)
      : is_constant_(of.read_only()), raw_(raw_of(of, of.type())) {}
  // Of a shape that the other side tells.
  template <host_elements Memory, class Other>
  array_place(Memory&& memory, const Other& other) : array_place(std::span(memory), other, 0) {}
  template <host_mdspan Memory>
  explicit array_place(const Memory& memory)
      : is_constant_(std::is_const_v<typename Memory::element_type>) {
    using T = typename Memory::element_type;
    where_.shape.resize(Memory::rank());
    where_.strides.resize(Memory::rank());
    for (std::size_t axis = 0; axis < Memory::rank(); ++axis) {
      where_.shape[axis] = static_cast<std::int64_t>(memory.extent(axis));
      where_.strides[axis] =
          static_cast<std::int64_t>(memory.stride(axis)) * static_cast<std::int64_t>(sizeof(T));
    }
    take(memory.data_handle(), dtype_of<T>);
  }
  array_place(const array_place&) = delete;
  array_place& operator=(const array_place&) = delete;
  ~array_place() = default;

  [[nodiscard]] const isthmus_array_t* raw() const noexcept { return &raw_; }
  void require_writable() const {
    if (is_constant_) {
      raise(status::read_only, "this array is read-only and cannot be written");
    }
  }

 private:
  template <class T, std::size_t Extent, class Other>
  array_place(std::span<T, Extent> memory, const Other& other, int)
      : is_constant_(std::is_const_v<T>) {
    if (memory.size() != other.size()) {
      raise(status::invalid_argument,
            std::to_string(memory.size()) + " elements and an array of shape " +
                to_string(other.shape()) + ", which has " + std::to_string(other.size()));
    }
    where_ = v1::layout<dynamic_rank>::dense(other.shape(), sizeof(T));
    take(memory.data(), dtype_of<T>);
  }
  template <class Array>
  [[nodiscard]] static isthmus_array_t raw_of(const Array& of, dtype type) {
    return {{of.buffer().get(), nullptr, of.byte_offset()},
            static_cast<isthmus_dtype_t>(type),
            of.shape().size(),
            of.shape().data(),
            of.strides().data()};
  }
  void take(const void* memory, dtype type) noexcept {
    raw_ = {{nullptr, const_cast<void*>(memory), 0},
            static_cast<isthmus_dtype_t>(type),
            where_.rank(),
            where_.shape.data(),
            where_.strides.data()};
  }

  bool is_constant_;
  v1::layout<dynamic_rank> where_{};
  isthmus_array_t raw_{};
};

template <class Side, class Other>
[[nodiscard]] array_place place_of(Side& side, const Other& other) {
  if constexpr (host_elements<Side>) {
    return array_place(side, other);
  } else {
    return array_place(side);
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
constexpr void require_variable() noexcept {
  using plain = std::remove_reference_t<To>;
  static_assert(!holds_constants<plain> && !holds_constants<std::remove_const_t<plain>>,
                "the destination's elements are const");
}

inline auto copy_array_call(const array_place& to, const array_place& from, casting how,
                            queue_choice on) {
  return [&to, &from, how, on](const isthmus_operation_t* what, isthmus_event_t** event) {
    return isthmus_copy_array(on.get(), to.raw(), from.raw(), static_cast<isthmus_casting_t>(how),
                              what, event);
  };
}
template <class Value>
auto fill_array_call(const array_place& to, const Value& value, casting how, queue_choice on) {
  return [&to, &value, how, on](const isthmus_operation_t* what, isthmus_event_t** event) {
    return isthmus_fill_array(on.get(), to.raw(), &value,
                              static_cast<isthmus_dtype_t>(dtype_of<Value>),
                              static_cast<isthmus_casting_t>(how), what, event);
  };
}

}  // namespace detail

// At least one side is an array.
template <array_side To, array_side From>
  requires(any_array<To> || any_array<From>)
void copy(To&& to, From&& from, casting how = casting::same_kind, operation what = {}) {
  detail::require_variable<To>();
  const detail::array_place target = detail::place_of(to, from);
  const detail::array_place start = detail::place_of(from, to);
  target.require_writable();
  const queue_choice on = what.on;
  detail::run(what, nullptr, detail::copy_array_call(target, start, how, on));
}
template <array_side To, array_side From>
  requires(any_array<To> || any_array<From>)
event copy_async(To&& to, From&& from, casting how = casting::same_kind, operation what = {}) {
  detail::require_variable<To>();
  const detail::array_place target = detail::place_of(to, from);
  const detail::array_place start = detail::place_of(from, to);
  target.require_writable();
  const queue_choice on = what.on;
  return detail::run_async(what, detail::copy_array_call(target, start, how, on));
}

// Every element; of a value that converts to T as C++ does it.
template <class T, std::size_t N>
void fill(const array<T, N>& to, const std::type_identity_t<T>& value, operation what = {}) {
  static_assert(!std::is_const_v<T>, "the destination's elements are const");
  const queue_choice on = what.on;
  const detail::array_place target(to);
  detail::run(what, nullptr, detail::fill_array_call(target, value, casting::no, on));
}
template <class T, std::size_t N>
event fill_async(const array<T, N>& to, const std::type_identity_t<T>& value, operation what = {}) {
  static_assert(!std::is_const_v<T>, "the destination's elements are const");
  const queue_choice on = what.on;
  const detail::array_place target(to);
  return detail::run_async(what, detail::fill_array_call(target, value, casting::no, on));
}
// Of any type, as `how` allows.
template <std::same_as<dyn_array> Array, element Value>
void fill(const Array& to, const Value& value, casting how = casting::same_kind,
          operation what = {}) {
  const queue_choice on = what.on;
  const detail::array_place target(to);
  target.require_writable();
  detail::run(what, nullptr, detail::fill_array_call(target, value, how, on));
}
template <std::same_as<dyn_array> Array, element Value>
event fill_async(const Array& to, const Value& value, casting how = casting::same_kind,
                 operation what = {}) {
  const queue_choice on = what.on;
  const detail::array_place target(to);
  target.require_writable();
  return detail::run_async(what, detail::fill_array_call(target, value, how, on));
}

// Whether they have a byte of an element in common: exact up to a bound on the work, above which
// true where their extents meet. False of freed memory.
template <any_array One, any_array Other>
[[nodiscard]] bool overlaps(const One& one, const Other& other) {
  return isthmus_arrays_overlap(detail::array_place(one).raw(), detail::array_place(other).raw()) !=
         0;
}

}  // namespace v1
}  // namespace isthmus
