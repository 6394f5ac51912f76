// SPDX-License-Identifier: Apache-2.0
#pragma once
// Indexing: the element or the view that array[key] selects. Needs the interpreter's lock.

#include <optional>

#include "array/array.hpp"

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
// selects; std::nullopt for any other key. IndexError if an index is out of bounds.
[[nodiscard]] std::optional<std::size_t> element_at(const TypedArray& array, const KeyList& keys);
// The view that a key of integers, slices, None and ... selects. IndexError for an index out of
// bounds and for too many keys, ValueError for a step of 0, TypeError for other keys.
[[nodiscard]] nb::object view_at(nb::handle object, const TypedArray& array, const KeyList& keys);

// Converts the index to [0, extent). IndexError, which names value, axis and extent, if it is out
// of bounds.
[[nodiscard]] std::int64_t to_position(nb::handle index, std::int64_t extent, std::size_t axis);

}  // namespace isthmus::python
