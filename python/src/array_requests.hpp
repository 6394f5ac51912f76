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
};
using request_member = nb::handle array_request::*;

struct array_signature {
  const char* name;
  std::span<const request_member> positional;
  std::size_t required;  // of these
  bool takes_fill_value;
  bool is_like;  // takes a prototype, and a shape by keyword
};

// TypeError for an argument too many or too few, given twice, or not known. `usm_type` and
// `sycl_queue` are dpnp's names of kind and queue.
[[nodiscard]] array_request read_request(const array_signature& of, PyObject* const* arguments,
                                         std::size_t positional, PyObject* names);

}  // namespace isthmus::python
