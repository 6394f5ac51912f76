// One element of an array: what `a(i, j)` gives. It converts to the element's value and may be
// assigned to, and is used at once: it borrows the array.
//
//   const float x = a(1, 2);
//   a(1, 2) = 3;
//   { const isthmus::allow_scalar scope; device_array(0) += 1; }
//
// An element of shared or host memory is read and written in place. One of device memory is copied,
// by itself, some microseconds each time: it throws unsupported, with advice, on a thread without
// an allow_scalar. Threads: as the elements themselves.
#pragma once

#include <isthmus/copy.hpp>
#include <isthmus/dtype.hpp>

namespace isthmus {
inline namespace v1 {

// While one lives, its thread may touch single elements of device memory.
class allow_scalar {
 public:
  allow_scalar() noexcept { ++depth_; }
  allow_scalar(const allow_scalar&) = delete;
  allow_scalar& operator=(const allow_scalar&) = delete;
  ~allow_scalar() { --depth_; }
  [[nodiscard]] static bool here() noexcept { return depth_ != 0; }

 private:
  static inline thread_local int depth_ = 0;
};

namespace detail {

// Where one element lies: on the host at `at`, or, with `far`, at `offset` into device memory.
struct element_place {
  std::byte* at = nullptr;
  isthmus_buffer_t* far = nullptr;
  std::size_t offset = 0;
};

inline void require_scalar() {
  if (allow_scalar::here()) return;
  raise(status::unsupported,
        "a single element of a device array: each is a copy of its own. Copy the array to the host "
        "(to_vector, copy), or allow it in a scope: const isthmus::allow_scalar scope;");
}
inline void copy_element(const element_place& where, void* value, std::size_t nbytes, bool writes) {
  require_scalar();
  const isthmus_place_t there{where.far, nullptr, where.offset};
  const isthmus_place_t here{nullptr, value, 0};
  check(isthmus_copy(nullptr, writes ? &there : &here, writes ? &here : &there, nbytes, nullptr,
                     nullptr));
}

}  // namespace detail

template <element T>
class element_reference {
  static_assert(!std::is_const_v<T>);

 public:
  explicit element_reference(const detail::element_place& where) noexcept : where_(where) {}
  element_reference(const element_reference&) noexcept = default;
  ~element_reference() = default;

  [[nodiscard]] T get() const {
    if (where_.far == nullptr) [[likely]]
      return *reinterpret_cast<const T*>(where_.at);
    T value{};
    detail::copy_element(where_, &value, sizeof value, false);
    return value;
  }
  operator T() const { return get(); }

  const element_reference& operator=(T value) const {
    if (where_.far == nullptr) [[likely]] {
      *reinterpret_cast<T*>(where_.at) = value;
    } else {
      detail::copy_element(where_, &value, sizeof value, true);
    }
    return *this;
  }
  // The element, as all assignments: not where it lies.
  const element_reference& operator=(const element_reference& other) const {
    return *this = other.get();
  }
  const element_reference& operator+=(T value) const {
    return *this = static_cast<T>(get() + value);
  }
  const element_reference& operator-=(T value) const {
    return *this = static_cast<T>(get() - value);
  }
  const element_reference& operator*=(T value) const {
    return *this = static_cast<T>(get() * value);
  }
  const element_reference& operator/=(T value) const {
    return *this = static_cast<T>(get() / value);
  }

 private:
  detail::element_place where_;
};

}  // namespace v1
}  // namespace isthmus
