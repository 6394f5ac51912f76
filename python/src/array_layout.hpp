#pragma once
// How the elements of an array lie in memory, as the interfaces of array libraries tell it.

#include "array_numbers.hpp"
#include "common.hpp"

#include <stdexcept>

namespace isthmus::python {

// Numbers that reach beyond any address: Python's ValueError.
struct too_far final : std::length_error {
  too_far() : length_error{"the array reaches beyond 63 bits"} {}
};

// A type that array libraries know, in this machine's order of bytes. There is one object of each,
// so that equal types have equal addresses.
struct element_type {
  char kind;               // NumPy's: b, i, u, f or c
  std::uint8_t item;       // bytes of an element
  std::uint8_t code;       // DLPack's
  const char* typestr;     // of the array interfaces; nullptr: they have no name for bfloat16
  const char* format;      // of the buffer protocol; nullptr as above
  const char* name;        // NumPy's
  std::uint8_t alignment;  // bytes
  isthmus_dtype_t dtype;   // the library's
};
// Of a typestr ("<f4") or NumPy's name ("float32"); nullptr for anything else.
[[nodiscard]] const element_type* find_element_type(nb::handle text);
// Of a dtype of NumPy's; nullptr where no array here has it.
[[nodiscard]] const element_type* find_numpys_type(nb::handle dtype);
// Of a format of the buffer protocol, null: bytes, for elements of `item` bytes. nullptr for
// records, objects and another machine's order of bytes.
[[nodiscard]] const element_type* element_type_of_format(const char* format, std::int64_t item);
// Of a DType, or of anything that NumPy takes for a dtype, which it is asked only where that is no
// name of it; None: float32. TypeError with the reason where it is none, or one of dates, text,
// objects, records or another order of bytes.
[[nodiscard]] const element_type& to_element_type(nb::handle dtype);
[[nodiscard]] const element_type& byte_type() noexcept;
[[nodiscard]] const element_type& default_element_type() noexcept;  // float32
[[nodiscard]] std::span<const element_type> element_types() noexcept;
// Borrowed. The typestr is interned, an AttributeError for bfloat16; NumPy is imported for the
// dtype.
[[nodiscard]] nb::handle typestr_of(const element_type& of);
// NumPy's; for bfloat16 the one of the package ml_dtypes, and without that our DType.
[[nodiscard]] nb::handle dtype_of(const element_type& of);

struct array_layout {
  array_numbers shape;                 // none negative
  array_numbers strides;               // in bytes, as many
  std::int64_t item = 1;               // bytes of an element
  const element_type* type = nullptr;  // nullptr: one of which only the size is known
};

enum class element_order { c, fortran };

// In C order, without gaps.
[[nodiscard]] array_numbers dense_strides(number_span shape, std::int64_t item);
// Without gaps in that order; where an extent is 1 or less its stride says nothing.
[[nodiscard]] bool is_dense(const array_layout& of, element_order order);
// In either.
[[nodiscard]] bool is_contiguous(const array_layout& of);
[[nodiscard]] bool is_empty(const array_layout& of) noexcept;

// The box around all elements, counted in bytes from the first one's start; around that one if
// there are none.
struct array_box {
  std::int64_t start = 0;
  std::int64_t nbytes = 0;
};
[[nodiscard]] array_box box_of(const array_layout& what);

struct typed_layout;

// A reference to a layout, which the last one deletes. Counted under the interpreter's lock, not by
// atomic operations: those of a std::shared_ptr took 6 of the 200 ns of an array made and dropped.
class shared_layout {
 public:
  shared_layout() noexcept = default;
  explicit shared_layout(const typed_layout* made) noexcept;
  shared_layout(const shared_layout& other) noexcept : shared_layout{other.of_} {}
  shared_layout(shared_layout&& other) noexcept : of_{std::exchange(other.of_, nullptr)} {}
  shared_layout& operator=(shared_layout other) noexcept {
    std::swap(of_, other.of_);
    return *this;
  }
  ~shared_layout();

  [[nodiscard]] const typed_layout* get() const noexcept { return of_; }
  [[nodiscard]] const typed_layout& operator*() const noexcept { return *of_; }
  [[nodiscard]] const typed_layout* operator->() const noexcept { return of_; }
  [[nodiscard]] explicit operator bool() const noexcept { return of_ != nullptr; }

 private:
  const typed_layout* of_ = nullptr;
};

// A layout that never changes, with what was worked out of it once: arrays share it. Each stride is
// a multiple of the item.
struct typed_layout : array_layout {
  // Pre: a type is set. Throws too_far; not without elements, whatever the other extents are.
  explicit typed_layout(array_layout what);
  typed_layout(const typed_layout&) = delete;
  typed_layout& operator=(const typed_layout&) = delete;
  ~typed_layout();
  std::int64_t size = 0;    // elements
  std::size_t nbytes = 0;   // of them, packed
  std::size_t before = 0;   // bytes from the lowest element to the first: more than 0 if it runs
                            // backwards
  std::size_t extent = 0;   // bytes from the lowest element's start to the end of the highest
  bool is_c_dense = false;  // in C order without gaps, or without elements
  // These are guarded by the interpreter's lock. With the axes in reverse order, once it was asked
  // for; and of such a one the layout that it is the reverse of, while that lives, which owns this
  // one.
  mutable shared_layout reversed{};
  mutable const typed_layout* reverse_of = nullptr;
  mutable std::size_t references = 0;
};
// Throws as its constructor.
[[nodiscard]] inline shared_layout share_layout(array_layout what) {
  return shared_layout{new typed_layout{std::move(what)}};
}

inline shared_layout::shared_layout(const typed_layout* made) noexcept : of_{made} {
  if (of_ != nullptr) {
    ++of_->references;
  }
}
inline shared_layout::~shared_layout() {
  if (of_ != nullptr && --of_->references == 0) {
    delete of_;
  }
}

// In C order; OverflowError where that does not fit in 63 bits.
[[nodiscard]] shared_layout dense_layout(array_numbers shape, const element_type& type);

// BufferError, with the name of the protocol, unless each element is aligned and whole elements
// lie between any two of them.
void require_whole_elements(const void* first, const typed_layout& layout, const char* protocol);

// Of one integer, or of a sequence of them. ValueError below 0, OverflowError from 2**63 on, and
// for more than 64 of them ValueError.
[[nodiscard]] array_numbers to_shape(nb::handle given);
[[nodiscard]] nb::object to_tuple(number_span numbers);
// Strides as the interfaces have them that count elements.
[[nodiscard]] array_numbers in_items(number_span strides, std::int64_t item);

// Bytes of an element of type "<f4" and the like; what is not written in the protocol's own way is
// asked of NumPy, as dpctl does. 0 for what is no number and no bool.
[[nodiscard]] std::size_t item_size_of(nb::handle typestr);

}  // namespace isthmus::python
