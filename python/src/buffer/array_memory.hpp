// SPDX-License-Identifier: Apache-2.0
#pragma once
// The memory of an array: a Buffer whose Python object is created when it is first needed. Arrays
// that are only created and dropped never need that object. Guarded by the interpreter's lock,
// which may be released while the object is created.

#include "buffer/buffer.hpp"

namespace isthmus::python {

class ArrayMemory {
 public:
  // `object` is an initialized Buffer.
  explicit ArrayMemory(nb::object object) noexcept : object_{std::move(object)} {}
  // New memory. `queue` is a Queue.
  ArrayMemory(BufferHandle raw, nb::object queue, isthmus_kind_t kind, std::size_t nbytes) noexcept
      : raw_{std::move(raw)}, queue_{std::move(queue)}, kind_{kind}, nbytes_{nbytes} {}
  ArrayMemory(ArrayMemory&&) noexcept = default;
  ArrayMemory& operator=(ArrayMemory&&) = delete;
  ~ArrayMemory();

  // The Buffer; every call returns the same object. Throws nb::python_error (MemoryError).
  [[nodiscard]] const nb::object& object() const {
    if (!object_.is_valid()) [[unlikely]] {
      make_object();
    }
    return object_;
  }
  [[nodiscard]] const Buffer& get() const { return *nb::inst_ptr<Buffer>(object()); }
  // For uses that need no Python object.
  [[nodiscard]] isthmus_buffer_t* raw() const noexcept {
    return object_.is_valid() ? nb::inst_ptr<Buffer>(object_)->raw.get() : raw_.get();
  }
  [[nodiscard]] isthmus_kind_t kind() const noexcept {
    return object_.is_valid() ? nb::inst_ptr<Buffer>(object_)->kind : kind_;
  }
  [[nodiscard]] bool read_only() const noexcept {
    return object_.is_valid() && nb::inst_ptr<Buffer>(object_)->read_only;
  }
  // Replaces the Buffer by another one. Call after `object`; the caller keeps the old one alive.
  void replace(nb::object object) noexcept { object_ = std::move(object); }

 private:
  void make_object() const;

  mutable nb::object object_{};
  // The arguments of the object's creation. Empty afterwards.
  mutable BufferHandle raw_{};
  mutable nb::object queue_{};
  isthmus_kind_t kind_{};
  std::size_t nbytes_{};
};

}  // namespace isthmus::python
