// SPDX-License-Identifier: Apache-2.0
#pragma once
// Parses the arguments of isthmus.empty and of the other functions that create arrays, without a
// tuple and a dictionary. Needs the interpreter's lock.

#include <array>
#include <span>

#include "common.hpp"

namespace isthmus::python {

// A handle that is not valid was not given.
struct array_request {
  nb::handle shape, dtype, fill_value, prototype;
  nb::handle order, kind, device, queue, resource, fallback, alignment;
  bool has_keywords = false;
};
using request_member = nb::handle array_request::*;

struct array_signature {
  const char* name;
  std::span<const request_member> positional;
  std::size_t required;  // the number of required positional arguments
  bool takes_fill_value;
  bool is_like;  // takes a prototype, and a shape by keyword
};

// Like read_request, for calls with names or a wrong number of arguments.
[[nodiscard]] array_request read_any_request(const array_signature& of, PyObject* const* arguments,
                                             std::size_t positional, PyObject* names);

// TypeError for too many or too few arguments, one given twice, or an unknown name. `usm_type` and
// `sycl_queue` are dpnp's names of kind and queue. Inline, so that a call without names, with a
// signature known to the compiler, is a few stores.
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
