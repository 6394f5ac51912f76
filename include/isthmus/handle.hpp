// SPDX-License-Identifier: Apache-2.0
// A counted reference to an object of the library: the base of all handle classes.
//
// Copies share the object. A moved-from handle is empty. An empty handle may be assigned to,
// compared or destroyed; anything else throws invalid_argument, with a text that names the class.
//
// Cost: a pointer; a copy is one atomic increment. Thread safety: the objects may be used from any
// thread. One handle object is like any plain value: no concurrent reads and writes.
#pragma once

#include <isthmus/error.hpp>

#include <utility>

namespace isthmus {
inline namespace v1 {
namespace detail {

// The name of the handle class of a C type, for messages. Specialized beside each class.
template <class Raw>
inline constexpr const char* class_name = nullptr;

// Kept out of line, so that callers only test a pointer.
[[noreturn, gnu::cold, gnu::noinline]] inline void raise_empty(const char* name) {
  raise(status::invalid_argument,
        std::string("this isthmus::") + name + " is empty: it was moved from, or never assigned");
}

template <class Derived, class Raw, auto Retain, auto Release>
class handle {
 public:
  using raw_type = Raw;

  handle() noexcept = default;
  handle(const handle& other) noexcept : raw_(other.raw_) { Retain(raw_); }
  handle(handle&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  handle& operator=(const handle& other) noexcept {
    handle(other).swap(*this);
    return *this;
  }
  handle& operator=(handle&& other) noexcept {
    handle(std::move(other)).swap(*this);
    return *this;
  }
  ~handle() {
    if (raw_ != nullptr) Release(raw_);  // moved-from handles are common: no call for them
  }

  // The C handle, still owned by this object.
  [[nodiscard]] Raw* get() const noexcept { return raw_; }
  // The same. Throws invalid_argument if this handle is empty.
  [[nodiscard]] Raw* require() const {
    if (raw_ == nullptr) [[unlikely]]
      raise_empty(class_name<Raw>);
    return raw_;
  }
  // The C handle, now owned by the caller.
  [[nodiscard]] Raw* detach() noexcept { return std::exchange(raw_, nullptr); }
  // The output argument of a C function that returns a reference. Precondition: empty.
  [[nodiscard]] Raw** out() noexcept { return &raw_; }
  [[nodiscard]] explicit operator bool() const noexcept { return raw_ != nullptr; }

  // Takes ownership of a reference that a C function returned.
  [[nodiscard]] static Derived take(Raw* raw) noexcept {
    Derived result;
    static_cast<handle&>(result).raw_ = raw;
    return result;
  }
  // Adds a reference to an object that is referenced elsewhere.
  [[nodiscard]] static Derived share(Raw* raw) noexcept {
    Retain(raw);
    return take(raw);
  }

 protected:
  explicit handle(Raw* raw) noexcept : raw_(raw) {}
  void swap(handle& other) noexcept { std::swap(raw_, other.raw_); }

 private:
  Raw* raw_ = nullptr;
};

// Transfers an object of the caller to the library, which destroys the object when it is no longer
// needed.
template <class Value>
[[nodiscard]] isthmus_owner_t make_owner(Value&& value) {
  using stored = std::decay_t<Value>;
  static_assert(std::is_nothrow_destructible_v<stored>, "the library cannot propagate exceptions");
  return {new stored(std::forward<Value>(value)),
          [](void* object) { delete static_cast<stored*>(object); }};
}

// Calls a function of the C ABI that returns an object through its last argument.
template <class Object, class Function, class... Arguments>
[[nodiscard]] Object make(Function function, Arguments... arguments) {
  Object result;
  check(function(arguments..., result.out()));
  return result;
}

// Calls a function of the C ABI that reports properties in a structure, its last argument.
template <class Info, class Function, class... Arguments>
[[nodiscard]] Info read(Function function, Arguments... arguments) {
  Info info{};
  info.struct_size = sizeof info;
  check(function(arguments..., &info));
  return info;
}

}  // namespace detail
}  // namespace v1
}  // namespace isthmus
