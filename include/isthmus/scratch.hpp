// SPDX-License-Identifier: Apache-2.0
// Arrays that are freed at the end of a scope.
//
//   isthmus::scratch temporary({.queue = queue});
//   auto a = temporary.empty<float>({1000});          // freed when the scope ends,
//   auto b = temporary.zeros<int>({10, 10});          // even if there are copies of them
//
//   isthmus::scoped_array tmp(isthmus::empty<float>({1000}));
//   isthmus::fill(*tmp, 1.0f);
//   float sum = isthmus::with_empty<float>({1000}, [](const auto& temporary) { ... });
//
// Freeing such an array closes all its copies and views too: using them throws closed. Host views
// and pending operations keep the memory alive until they have ended. The end of a scope never
// blocks and calls no driver.
//
// Cost: that of an array, and a pointer in a list. Thread safety: a scratch is used by one thread
// at a time. When it is destroyed, no other thread may be inside an element access of its arrays
// (array.hpp).
#pragma once

#include <isthmus/array_make.hpp>

#include <utility>
#include <vector>

namespace isthmus {
inline namespace v1 {

// Creates arrays and frees them in its destructor.
class scratch {
 public:
  scratch() = default;
  // The options and the kind of its arrays. Each call may name another kind.
  explicit scratch(const array_options& options, isthmus::kind kind = isthmus::kind::device)
      : queue_(options.queue.get() != nullptr ? queue::share(options.queue.get()) : queue()),
        options_(options),
        kind_(kind) {}
  scratch(const scratch&) = delete;
  scratch& operator=(const scratch&) = delete;
  ~scratch() { release(); }

  // As the functions of array_make.hpp, which list the errors.
  template <class T, array_shape Shape>
  [[nodiscard]] array_of<T, Shape> empty(const Shape& shape,
                                         isthmus::kind kind = isthmus::kind::unknown) {
    return keep(v1::empty<T>(shape, kind_or_default(kind), options_));
  }
  template <class T, std::size_t N>
  [[nodiscard]] array<T, N> empty(const axis_size (&shape)[N],
                                  isthmus::kind kind = isthmus::kind::unknown) {
    return empty<T>(detail::axes_of(shape), kind);
  }
  template <class T, array_shape Shape>
  [[nodiscard]] array_of<T, Shape> zeros(const Shape& shape,
                                         isthmus::kind kind = isthmus::kind::unknown) {
    return keep(v1::zeros<T>(shape, kind_or_default(kind), options_));
  }
  template <class T, std::size_t N>
  [[nodiscard]] array<T, N> zeros(const axis_size (&shape)[N],
                                  isthmus::kind kind = isthmus::kind::unknown) {
    return zeros<T>(detail::axes_of(shape), kind);
  }
  template <class T, array_shape Shape>
  [[nodiscard]] array_of<T, Shape> ones(const Shape& shape,
                                        isthmus::kind kind = isthmus::kind::unknown) {
    return keep(v1::ones<T>(shape, kind_or_default(kind), options_));
  }
  template <class T, std::size_t N>
  [[nodiscard]] array<T, N> ones(const axis_size (&shape)[N],
                                 isthmus::kind kind = isthmus::kind::unknown) {
    return ones<T>(detail::axes_of(shape), kind);
  }
  template <class T, array_shape Shape>
  [[nodiscard]] array_of<T, Shape> full(const Shape& shape, const std::type_identity_t<T>& value,
                                        isthmus::kind kind = isthmus::kind::unknown) {
    return keep(v1::full<T>(shape, value, kind_or_default(kind), options_));
  }
  template <class T, std::size_t N>
  [[nodiscard]] array<T, N> full(const axis_size (&shape)[N], const std::type_identity_t<T>& value,
                                 isthmus::kind kind = isthmus::kind::unknown) {
    return full<T>(detail::axes_of(shape), value, kind);
  }
  // Adds an array that was created elsewhere. The end of this scope then frees it and all other
  // arrays on its buffer, including the array that a view was created from.
  template <any_array Array>
  Array keep(Array array) {
    buffers_.push_back(array.buffer());
    return array;
  }

  // Frees all its arrays now.
  void release() noexcept {
    for (const buffer& owned_buffer : buffers_) owned_buffer.free();
    buffers_.clear();
  }
  [[nodiscard]] std::size_t count() const noexcept { return buffers_.size(); }

 private:
  [[nodiscard]] isthmus::kind kind_or_default(isthmus::kind kind) const noexcept {
    return kind == isthmus::kind::unknown ? kind_ : kind;
  }

  queue queue_;  // keeps the queue that `options_` borrows alive
  array_options options_{};
  kind kind_ = kind::device;
  std::vector<buffer> buffers_;
};

// One array that is freed at the end of the scope, together with all other arrays on its buffer.
template <class T, std::size_t N>
class scoped_array {
 public:
  explicit scoped_array(array<T, N> owned_array) noexcept : array_(std::move(owned_array)) {}
  scoped_array(const scoped_array&) = delete;
  scoped_array& operator=(const scoped_array&) = delete;
  ~scoped_array() {
    if (array_) array_.buffer().free();
  }

  [[nodiscard]] const array<T, N>& get() const noexcept { return array_; }
  [[nodiscard]] const array<T, N>& operator*() const noexcept { return array_; }
  [[nodiscard]] const array<T, N>* operator->() const noexcept { return &array_; }
  // Returns the array, which the scope then does not free.
  [[nodiscard]] array<T, N> release() noexcept { return std::exchange(array_, {}); }

 private:
  array<T, N> array_;
};

// Calls `function` with an array of undefined elements and returns its result. The array, and all
// others on its memory, are freed when `function` returns or throws.
template <class T, array_shape Shape, class Function>
decltype(auto) with_empty(const Shape& shape, Function&& function,
                          isthmus::kind kind = isthmus::kind::device,
                          const array_options& options = {}) {
  const scoped_array owned_array(empty<T>(shape, kind, options));
  return std::forward<Function>(function)(owned_array.get());
}
template <class T, std::size_t N, class Function>
decltype(auto) with_empty(const axis_size (&shape)[N], Function&& function,
                          isthmus::kind kind = isthmus::kind::device,
                          const array_options& options = {}) {
  return with_empty<T>(detail::axes_of(shape), std::forward<Function>(function), kind, options);
}

}  // namespace v1
}  // namespace isthmus
