// SPDX-License-Identifier: Apache-2.0
#pragma once
// Layouts: how the elements of an array lie in memory, and the element types, as the exchange
// protocols of array libraries describe them.

#include <isthmus/layout.hpp>

#include <span>
#include <stdexcept>

#include "core/common.hpp"

namespace isthmus::python {

// The extents or strides of an array.
using ArrayNumbers = axes<dynamic_rank>;
using NumberSpan = std::span<const std::int64_t>;

// Thrown if an array's offsets do not fit in 63 bits. Becomes a ValueError in Python.
struct TooFar final : std::length_error {
  TooFar() : length_error{"the array's offsets do not fit in 63 bits"} {}
};

// An element type that array libraries support, in native byte order. There is one object per type,
// so equal types have equal addresses.
struct ElementType {
  char kind;          // NumPy's letter: b, i, u, f or c
  std::uint8_t item;  // bytes of an element
  std::uint8_t code;  // DLPack's type code
  // The type's name in the array interfaces; nullptr for bfloat16, which they do not name.
  const char* typestr;
  const char* format;      // in the buffer protocol; nullptr for bfloat16
  const char* name;        // NumPy's name
  std::uint8_t alignment;  // bytes
  isthmus_dtype_t dtype;   // the library's number
};
// Finds a type by typestr ("<f4") or NumPy name ("float32"); nullptr for other objects.
[[nodiscard]] const ElementType* find_element_type(nb::handle text);
// Finds a type by NumPy dtype; nullptr if arrays do not support it.
[[nodiscard]] const ElementType* find_numpy_type(nb::handle dtype);
// Finds a type by its format in the buffer protocol, for elements of `item` bytes; a null format
// means bytes. nullptr for records, objects and non-native byte order.
[[nodiscard]] const ElementType* element_type_of_format(const char* format, std::int64_t item);
// Converts a DType or any object that NumPy accepts as a dtype. NumPy is called only for objects
// other than DTypes and known names. None stands for float32. TypeError with the reason if the
// object is not a dtype, or is a dtype of dates, text, objects, records or non-native byte order.
[[nodiscard]] const ElementType& to_element_type(nb::handle dtype);
[[nodiscard]] std::span<const ElementType> element_types() noexcept;
[[nodiscard]] inline const ElementType& element_type(isthmus_dtype_t dtype) noexcept {
  return element_types()[static_cast<std::size_t>(dtype) - 1];
}
[[nodiscard]] inline const ElementType& byte_type() noexcept { return element_type(ISTHMUS_UINT8); }
[[nodiscard]] inline const ElementType& default_element_type() noexcept {
  return element_type(ISTHMUS_FLOAT32);
}
// The interned typestr, as a borrowed reference. AttributeError for bfloat16.
[[nodiscard]] nb::handle typestr_of(const ElementType& type);
// NumPy's dtype, as a borrowed reference; imports NumPy. For bfloat16 it is the dtype of the
// package ml_dtypes, or this module's DType if that package is not installed.
[[nodiscard]] nb::handle dtype_of(const ElementType& type);

// Extents are not negative. `offset` is that of the first element, relative to an array that the
// layout is a view of; otherwise 0.
struct ArrayLayout : layout<dynamic_rank> {
  std::int64_t item = 1;              // bytes of an element
  const ElementType* type = nullptr;  // nullptr if only the size of the type is known
};

// Strides of C order without gaps. Throws TooFar.
[[nodiscard]] ArrayNumbers dense_strides(const ArrayNumbers& shape, std::int64_t item);

// The bounding box of all elements, in bytes relative to the first one. If the layout is empty, the
// box of one element at offset 0. Throws TooFar.
struct ArrayBox {
  std::int64_t start = 0;
  std::int64_t nbytes = 0;
};
[[nodiscard]] ArrayBox box_of(const ArrayLayout& layout);

struct TypedLayout;

// A reference-counted layout; the last reference deletes it. The count is guarded by the
// interpreter's lock instead of atomic operations: those of a std::shared_ptr took 6 of the 200 ns
// of creating and dropping an array.
class SharedLayout {
 public:
  SharedLayout() noexcept = default;
  explicit SharedLayout(const TypedLayout* layout) noexcept;
  SharedLayout(const SharedLayout& other) noexcept : SharedLayout{other.layout_} {}
  SharedLayout(SharedLayout&& other) noexcept : layout_{std::exchange(other.layout_, nullptr)} {}
  SharedLayout& operator=(SharedLayout other) noexcept {
    std::swap(layout_, other.layout_);
    return *this;
  }
  ~SharedLayout();

  [[nodiscard]] const TypedLayout* get() const noexcept { return layout_; }
  [[nodiscard]] const TypedLayout& operator*() const noexcept { return *layout_; }
  [[nodiscard]] const TypedLayout* operator->() const noexcept { return layout_; }
  [[nodiscard]] explicit operator bool() const noexcept { return layout_ != nullptr; }

 private:
  const TypedLayout* layout_ = nullptr;
};

// An immutable layout with the values computed from it once. Arrays share it. Each stride is a
// multiple of the item size. The offset is 0.
struct TypedLayout : ArrayLayout {
  // The description has a type. Throws TooFar, but never for an array without elements.
  explicit TypedLayout(ArrayLayout description);
  TypedLayout(const TypedLayout&) = delete;
  TypedLayout& operator=(const TypedLayout&) = delete;
  ~TypedLayout();
  std::int64_t size = 0;    // elements
  std::size_t nbytes = 0;   // of all elements, packed
  std::size_t before = 0;   // bytes from the lowest element to the first: above 0 if backwards
  std::size_t extent = 0;   // bytes from the start of the lowest element to the end of the highest
  bool is_c_dense = false;  // in C order without gaps, or without elements
  // Both are guarded by the interpreter's lock. `reversed` is the layout with the axes in reverse
  // order, created on first request. In such a reversed layout, `reverse_of` is the layout that
  // owns it, while that exists.
  mutable SharedLayout reversed{};
  mutable const TypedLayout* reverse_of = nullptr;
  mutable std::size_t references = 0;
};
// Throws what the constructor throws.
[[nodiscard]] inline SharedLayout share_layout(ArrayLayout layout) {
  return SharedLayout{new TypedLayout{std::move(layout)}};
}

inline SharedLayout::SharedLayout(const TypedLayout* layout) noexcept : layout_{layout} {
  if (layout_ != nullptr) {
    ++layout_->references;
  }
}
inline SharedLayout::~SharedLayout() {
  if (layout_ != nullptr && --layout_->references == 0) {
    delete layout_;
  }
}

// OverflowError if the sizes of a packed array do not fit in 63 bits.
void require_fit(const ArrayNumbers& shape, const ElementType& type);
// The layout of a packed array in C order. OverflowError if the sizes do not fit in 63 bits.
[[nodiscard]] SharedLayout dense_layout(ArrayNumbers shape, const ElementType& type);

// Throws BufferError, which names the protocol, unless every element is aligned and all strides are
// multiples of the element size.
void require_element_multiples(const void* first, const TypedLayout& layout, const char* protocol);

// ValueError for more dimensions than an array may have.
void require_max_ndim(std::size_t ndim);
// Converts one integer or a sequence of them. ValueError for negative extents and for more than 64
// extents, OverflowError from 2**63 on.
[[nodiscard]] ArrayNumbers to_shape(nb::handle argument);
[[nodiscard]] nb::object to_tuple(NumberSpan numbers);
// Bytes of all elements, packed, which fit in 63 bits.
[[nodiscard]] inline std::size_t packed_bytes(const ArrayLayout& layout) {
  return static_cast<std::size_t>(layout.count() * layout.item);
}
// The stride of an extent of 1 or less has no meaning: sets it to the element size.
void drop_idle_strides(ArrayLayout& layout);
// Converts strides in bytes to strides counted in elements, which some protocols use.
[[nodiscard]] ArrayNumbers strides_in_items(NumberSpan strides, std::int64_t item);

// The element size, in bytes, of a type such as "<f4". A typestr that is not in the protocol's own
// notation is passed to NumPy, as dpctl does. Returns 0 if the type is neither a number nor a bool.
[[nodiscard]] std::size_t item_size_of(nb::handle typestr);

}  // namespace isthmus::python
