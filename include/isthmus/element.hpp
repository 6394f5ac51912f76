// SPDX-License-Identifier: Apache-2.0
// A reference to one element of an array: the result of `a(i, j)`. It converts to the element's
// value and can be assigned to. It borrows the array and must be used at once: its operations are
// rvalue-qualified, so that code that stores a reference in a variable and then uses it does not
// compile.
//
//   const float x = a(1, 2);
//   a(1, 2) = 3;
//   { const isthmus::allow_scalar scope; device_array(0) += 1; }
//
// Elements of shared or host memory are read and written in place, by copying their bytes: reading
// them as another type is defined, and for bool any byte other than 0 is true. Each access to an
// element of device memory is a copy and takes several microseconds. Such an access throws
// unsupported on a thread without an allow_scalar. Thread safety: as the elements themselves.
#pragma once

#include <isthmus/copy.hpp>
#include <isthmus/dtype.hpp>

#include <cstring>

namespace isthmus {
inline namespace v1 {

// During the lifetime of such an object, the thread that created it may access single elements of
// device memory. Scopes nest.
class allow_scalar {
 public:
  allow_scalar() noexcept { ++depth_; }
  allow_scalar(const allow_scalar&) = delete;
  allow_scalar& operator=(const allow_scalar&) = delete;
  ~allow_scalar() { --depth_; }
  // True if the calling thread may access single elements of device memory.
  [[nodiscard]] static bool active() noexcept { return depth_ != 0; }

 private:
  static inline thread_local int depth_ = 0;
};

template <element T>
class element_reference;

namespace detail {

// The location of an element: `host_pointer`, or `offset` in `device_buffer` if that is set.
struct element_location {
  std::byte* host_pointer = nullptr;
  isthmus_buffer_t* device_buffer = nullptr;
  std::size_t offset = 0;
};

inline void require_scalar() {
  if (allow_scalar::active()) return;
  raise(status::unsupported,
        "access to a single element of a device array needs a separate copy: copy the array to the "
        "host (to_vector, copy), or allow it in a scope: const isthmus::allow_scalar scope;");
}
template <class T>
[[nodiscard]] T load(const std::byte* source) noexcept {
  if constexpr (std::is_same_v<T, bool>) {
    return *source != std::byte{0};
  } else {
    T value;
    std::memcpy(&value, source, sizeof value);
    return value;
  }
}

inline void copy_element(const element_location& location, void* value, std::size_t nbytes,
                         bool writes) {
  require_scalar();
  const isthmus_endpoint_t device_endpoint{location.device_buffer, nullptr, location.offset};
  const isthmus_endpoint_t host_endpoint{nullptr, value, 0};
  check(isthmus_copy(nullptr, writes ? &device_endpoint : &host_endpoint,
                     writes ? &host_endpoint : &device_endpoint, nbytes, nullptr, nullptr));
}

template <class>
inline constexpr bool is_element_reference = false;
template <class T>
inline constexpr bool is_element_reference<element_reference<T>> = true;

}  // namespace detail

// The result of an index expression on an array.
template <element T>
class element_reference {
  static_assert(!std::is_const_v<T>);

 public:
  explicit element_reference(const detail::element_location& location) noexcept
      : location_(location) {}
  element_reference(const element_reference&) = delete;
  ~element_reference() = default;

  [[nodiscard]] T get() const&& { return load(); }
  operator T() const&& { return load(); }
  // C++ performs at most one user-defined conversion implicitly. Without this operator, the
  // conversion to float would take two.
  operator float() const&&
    requires(std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>)
  {
    return load();
  }

  // All assignments return the new value.
  T operator=(T value) const&& { return store(value); }
  // Assigns the value of the other element; does not rebind the reference.
  T operator=(element_reference&& other) && { return store(other.load()); }
  T operator+=(T value) const&& { return store(static_cast<T>(load() + value)); }
  T operator-=(T value) const&& { return store(static_cast<T>(load() - value)); }
  T operator*=(T value) const&& { return store(static_cast<T>(load() * value)); }
  T operator/=(T value) const&& { return store(static_cast<T>(load() / value)); }

  // Compare the values. Without these operators C++ would not find comparison operators that are
  // templates, such as those of std::complex.
  friend bool operator==(const element_reference& a, const element_reference& b) {
    return a.load() == b.load();
  }
  template <class Other>
    requires(!detail::is_element_reference<Other> &&
             requires(const T& value, const Other& other) { value == other; })
  friend bool operator==(const element_reference& element, const Other& other) {
    return element.load() == other;
  }

 private:
  [[nodiscard]] T load() const {
    if (location_.device_buffer == nullptr) [[likely]]
      return detail::load<T>(location_.host_pointer);
    std::byte bytes[sizeof(T)];
    detail::copy_element(location_, bytes, sizeof bytes, false);
    return detail::load<T>(bytes);
  }
  T store(T value) const {
    if (location_.device_buffer == nullptr) [[likely]] {
      std::memcpy(location_.host_pointer, &value, sizeof value);
    } else {
      detail::copy_element(location_, &value, sizeof value, true);
    }
    return value;
  }

  detail::element_location location_;
};

}  // namespace v1
}  // namespace isthmus
