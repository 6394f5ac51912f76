// SPDX-License-Identifier: Apache-2.0
#pragma once
// array[key]: what a key selects of an array. Needs the interpreter's lock.

#include <optional>

#include "typed_array.hpp"

namespace isthmus::python {

// A key as the list of its items. Borrows the key.
class KeyList {
 public:
  explicit KeyList(PyObject* key) noexcept
      : single_{key},
        items_{PyTuple_Check(key) != 0 ? &PyTuple_GET_ITEM(key, 0) : &single_},
        count_{PyTuple_Check(key) != 0 ? static_cast<std::size_t>(PyTuple_GET_SIZE(key)) : 1} {}
  KeyList(const KeyList&) = delete;
  KeyList& operator=(const KeyList&) = delete;

  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] PyObject* const* begin() const noexcept { return items_; }
  [[nodiscard]] PyObject* const* end() const noexcept { return items_ + count_; }

 private:
  PyObject* single_;
  PyObject* const* items_;
  std::size_t count_;
};

// The offset from the buffer's start of the element that a key with one integer per dimension
// selects; nothing for any other key. IndexError out of bounds.
[[nodiscard]] std::optional<std::size_t> element_at(const TypedArray& array, const KeyList& keys);
// The view that a key of integers, slices, None and ... selects. IndexError out of bounds and for
// too many keys, ValueError for a step of 0, TypeError for other keys.
[[nodiscard]] nb::object view_at(nb::handle object, const TypedArray& array, const KeyList& keys);

// The index in [0, extent). IndexError out of bounds, which names value, axis and extent.
[[nodiscard]] std::int64_t to_position(nb::handle index, std::int64_t extent, std::size_t axis);

}  // namespace isthmus::python
