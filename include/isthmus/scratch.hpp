// Arrays that end with a scope.
//
//   isthmus::scratch temporary({.on = queue});
//   auto a = temporary.empty<float>({1000});          // all of these go back at the scope's end,
//   auto b = temporary.zeros<int>({10, 10});          // whoever still has them
//
//   isthmus::scoped_array tmp(isthmus::empty<float>({1000}));
//   isthmus::fill(*tmp, 1.0f);
//   float sum = isthmus::with_empty<float>({1000}, [](const auto& temporary) { ... });
//
// With an array all copies and views of it end: their use throws closed. Host views and work in
// flight keep the memory till they have ended. The end never blocks and calls no driver. Cost: an
// array's, and a pointer in a list. Threads: one at a time in a scratch; at its end no other one
// is inside an element access of what ends there (array.hpp).
#pragma once

#include <isthmus/array_make.hpp>

#include <utility>
#include <vector>

namespace isthmus {
inline namespace v1 {

class scratch {
 public:
  scratch() = default;
  // What its arrays are made with; they may name their kind.
  explicit scratch(const array_options& options, kind of = kind::device)
      : queue_(options.on.get() != nullptr ? queue::share(options.on.get()) : queue()),
        options_(options),
        kind_(of) {}
  scratch(const scratch&) = delete;
  scratch& operator=(const scratch&) = delete;
  ~scratch() { release(); }

  template <class T, array_shape Shape>
  [[nodiscard]] array_of<T, Shape> empty(const Shape& shape, kind of = kind::unknown) {
    return keep(v1::empty<T>(shape, chosen(of), options_));
  }
  template <class T, std::size_t N>
  [[nodiscard]] array<T, N> empty(const axis_size (&shape)[N], kind of = kind::unknown) {
    return empty<T>(detail::axes_of(shape), of);
  }
  template <class T, array_shape Shape>
  [[nodiscard]] array_of<T, Shape> zeros(const Shape& shape, kind of = kind::unknown) {
    return keep(v1::zeros<T>(shape, chosen(of), options_));
  }
  template <class T, std::size_t N>
  [[nodiscard]] array<T, N> zeros(const axis_size (&shape)[N], kind of = kind::unknown) {
    return zeros<T>(detail::axes_of(shape), of);
  }
  template <class T, array_shape Shape>
  [[nodiscard]] array_of<T, Shape> ones(const Shape& shape, kind of = kind::unknown) {
    return keep(v1::ones<T>(shape, chosen(of), options_));
  }
  template <class T, std::size_t N>
  [[nodiscard]] array<T, N> ones(const axis_size (&shape)[N], kind of = kind::unknown) {
    return ones<T>(detail::axes_of(shape), of);
  }
  template <class T, array_shape Shape>
  [[nodiscard]] array_of<T, Shape> full(const Shape& shape, const std::type_identity_t<T>& value,
                                        kind of = kind::unknown) {
    return keep(v1::full<T>(shape, value, chosen(of), options_));
  }
  template <class T, std::size_t N>
  [[nodiscard]] array<T, N> full(const axis_size (&shape)[N], const std::type_identity_t<T>& value,
                                 kind of = kind::unknown) {
    return full<T>(detail::axes_of(shape), value, of);
  }
  // One that was made otherwise ends here too, with all others on its buffer: a view takes the
  // array that it was made of along.
  template <any_array Array>
  Array keep(Array made) {
    buffers_.push_back(made.buffer());
    return made;
  }

  // All of them end now.
  void release() noexcept {
    for (const buffer& each : buffers_) each.free();
    buffers_.clear();
  }
  [[nodiscard]] std::size_t count() const noexcept { return buffers_.size(); }

 private:
  [[nodiscard]] kind chosen(kind of) const noexcept { return of == kind::unknown ? kind_ : of; }

  queue queue_;  // keeps the one that the options name
  array_options options_{};
  kind kind_ = kind::device;
  std::vector<buffer> buffers_;
};

// One array, which ends with all on its buffer at the scope's end.
template <class T, std::size_t N>
class scoped_array {
 public:
  explicit scoped_array(array<T, N> held) noexcept : held_(std::move(held)) {}
  scoped_array(const scoped_array&) = delete;
  scoped_array& operator=(const scoped_array&) = delete;
  ~scoped_array() {
    if (held_) held_.buffer().free();
  }

  [[nodiscard]] const array<T, N>& get() const noexcept { return held_; }
  [[nodiscard]] const array<T, N>& operator*() const noexcept { return held_; }
  [[nodiscard]] const array<T, N>* operator->() const noexcept { return &held_; }
  // The array lives on.
  [[nodiscard]] array<T, N> release() noexcept { return std::exchange(held_, {}); }

 private:
  array<T, N> held_;
};

// Calls `function` with an empty array whose memory goes back when it returns or throws: other
// arrays on it are closed then. Gives what it gives.
template <class T, array_shape Shape, class Function>
decltype(auto) with_empty(const Shape& shape, Function&& function, kind of = kind::device,
                          const array_options& options = {}) {
  const scoped_array held(empty<T>(shape, of, options));
  return std::forward<Function>(function)(held.get());
}
template <class T, std::size_t N, class Function>
decltype(auto) with_empty(const axis_size (&shape)[N], Function&& function, kind of = kind::device,
                          const array_options& options = {}) {
  return with_empty<T>(detail::axes_of(shape), std::forward<Function>(function), of, options);
}

static_assert(!std::copyable<scratch> && !std::copyable<scoped_array<float, 1>>);

}  // namespace v1
}  // namespace isthmus
