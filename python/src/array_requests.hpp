#pragma once
// The arguments of isthmus.empty and of the others that make arrays, read without a tuple and a
// dictionary.

#include <array>
#include <span>

#include "common.hpp"

namespace isthmus::python {

// Handles that are not valid were not given.
struct array_request {
  nb::handle shape, dtype, fill_value, prototype;
  nb::handle order, kind, device, queue, resource, fallback, alignment;
  bool has_keywords = false;
};
using request_member = nb::handle array_request::*;

struct array_signature {
  const char* name;
  std::span<const request_member> positional;
  std::size_t required;  // of these
  bool takes_fill_value;
  bool is_like;  // takes a prototype, and a shape by keyword
};

// As read_request, with names or a wrong number of arguments.
[[nodiscard]] array_request read_any_request(const array_signature& of, PyObject* const* arguments,
                                             std::size_t positional, PyObject* names);

// TypeError for an argument too many or too few, given twice, or not known. `usm_type` and
// `sycl_queue` are dpnp's names of kind and queue. Inline, so that a call without names, of a
// signature that the compiler knows, is some stores.
[[nodiscard]] inline array_request read_request(const array_signature& of,
                                                PyObject* const* arguments, std::size_t positional,
                                                PyObject* names) {
  if (names != nullptr || positional < of.required || positional > of.positional.size()) {
    return read_any_request(of, arguments, positional, names);
  }
  array_request read;
  for (std::size_t i = 0; i < positional; ++i) {
    read.*of.positional[i] = arguments[i];
  }
  return read;
}

}  // namespace isthmus::python
