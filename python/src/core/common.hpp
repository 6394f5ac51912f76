// SPDX-License-Identifier: Apache-2.0
#pragma once
// Included by every file of the module: the C ABI, nanobind, reference-counted handles.
//
// The module uses nothing of the library except isthmus.h. Its state is in globals that the
// interpreter's lock guards: one interpreter per process.

#include <isthmus/isthmus.h>
#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace nb = nanobind;

namespace isthmus::python {

template <class Noun>
struct Counted;

#define ISTHMUS_COUNTED(noun)                                                                \
  template <>                                                                                \
  struct Counted<isthmus_##noun##_t> {                                                       \
    static void retain(isthmus_##noun##_t* raw) noexcept { isthmus_##noun##_retain(raw); }   \
    static void release(isthmus_##noun##_t* raw) noexcept { isthmus_##noun##_release(raw); } \
  }
ISTHMUS_COUNTED(platform);
ISTHMUS_COUNTED(device);
ISTHMUS_COUNTED(context);
ISTHMUS_COUNTED(queue);
ISTHMUS_COUNTED(event);
ISTHMUS_COUNTED(resource);
ISTHMUS_COUNTED(scope);
ISTHMUS_COUNTED(budget);
ISTHMUS_COUNTED(buffer);
#undef ISTHMUS_COUNTED

// Owns one reference to an object of the library.
template <class Noun>
class CountedHandle {
 public:
  CountedHandle() noexcept = default;
  explicit CountedHandle(Noun* owned) noexcept : raw_{owned} {}
  CountedHandle(CountedHandle&& other) noexcept : raw_{std::exchange(other.raw_, nullptr)} {}
  CountedHandle& operator=(CountedHandle&& other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  ~CountedHandle() {
    if (raw_ != nullptr) {
      Counted<Noun>::release(raw_);
    }
  }

  [[nodiscard]] static CountedHandle retained(Noun* borrowed) noexcept {
    Counted<Noun>::retain(borrowed);
    return CountedHandle{borrowed};
  }
  [[nodiscard]] Noun* get() const noexcept { return raw_; }
  [[nodiscard]] Noun* detach() noexcept { return std::exchange(raw_, nullptr); }
  [[nodiscard]] explicit operator bool() const noexcept { return raw_ != nullptr; }
  // The output argument of a library function. Pre: empty.
  [[nodiscard]] Noun** out() noexcept { return &raw_; }

 private:
  Noun* raw_ = nullptr;
};

using PlatformHandle = CountedHandle<isthmus_platform_t>;
using DeviceHandle = CountedHandle<isthmus_device_t>;
using ContextHandle = CountedHandle<isthmus_context_t>;
using QueueHandle = CountedHandle<isthmus_queue_t>;
using EventHandle = CountedHandle<isthmus_event_t>;
using ResourceHandle = CountedHandle<isthmus_resource_t>;
using ScopeHandle = CountedHandle<isthmus_scope_t>;
using BudgetHandle = CountedHandle<isthmus_budget_t>;
using BufferHandle = CountedHandle<isthmus_buffer_t>;

// A new Python object of the bound class T, or of `type`, a subclass of it.
template <class T, class... Args>
[[nodiscard]] nb::object make_instance(nb::handle type, Args&&... args) {
  nb::object object = nb::inst_alloc(type);
  if (!object.is_valid()) {
    throw nb::python_error();
  }
  new (nb::inst_ptr<T>(object)) T(std::forward<Args>(args)...);
  nb::inst_mark_ready(object);
  return object;
}

// The C++ side of a Python object; nullptr if it has another type or its __init__ never ran.
template <class T>
[[nodiscard]] T* instance_of(nb::handle type, nb::handle object) noexcept {
  const auto* expected = reinterpret_cast<PyTypeObject*>(type.ptr());
  auto* actual = Py_TYPE(object.ptr());
  if (actual != expected && actual->tp_base != expected &&
      PyType_IsSubtype(actual, const_cast<PyTypeObject*>(expected)) == 0) {
    return nullptr;
  }
  return nb::inst_ready(object) ? nb::inst_ptr<T>(object) : nullptr;
}

}  // namespace isthmus::python
