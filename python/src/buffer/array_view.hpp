// SPDX-License-Identifier: Apache-2.0
#pragma once
// The view of a Buffer's memory that is described or exported to other libraries: its elements,
// with the type and shape of an array over it, or all its bytes.

#include "buffer/buffer.hpp"
#include "layout/layout.hpp"

namespace isthmus::python {

// Borrows everything except the Buffer.
struct ArrayView {
  const Buffer& buffer;
  nb::object object;   // the Buffer: another thread may free the array during a copy
  std::size_t offset;  // bytes to the first element
  NumberSpan shape;
  NumberSpan strides;  // in bytes
  const ElementType& type;
  std::size_t nbytes;  // of the elements, packed
  bool is_c_dense;
  bool read_only;

  [[nodiscard]] const void* address_in(const void* start) const noexcept {
    return static_cast<const char*>(start) + offset;
  }
};

// All of a Buffer, as a one-dimensional array of bytes.
class ByteView {
 public:
  // Throws what require_buffer throws.
  explicit ByteView(nb::handle object)
      : buffer_{require_buffer(object)},
        object_{object},
        shape_{static_cast<std::int64_t>(buffer_.nbytes)} {}
  ByteView(const ByteView&) = delete;
  ByteView& operator=(const ByteView&) = delete;

  [[nodiscard]] ArrayView get() const noexcept {
    return {buffer_,     nb::borrow(object_), 0,    shape_,           k_strides,
            byte_type(), buffer_.nbytes,      true, buffer_.read_only};
  }

 private:
  static constexpr std::int64_t k_strides[1] = {1};
  const Buffer& buffer_;
  nb::handle object_;
  std::int64_t shape_[1];
};

}  // namespace isthmus::python
