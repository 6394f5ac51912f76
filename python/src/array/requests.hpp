// SPDX-License-Identifier: Apache-2.0
#pragma once
// Parses the arguments of isthmus.empty and of the other functions that create arrays, without a
// tuple and a dictionary. Needs the interpreter's lock.

#include <array>
#include <span>

#include "core/common.hpp"

namespace isthmus::python {

// An argument that the caller did not pass is a handle that is not valid.
struct ArrayRequest {
  nb::handle shape, dtype, fill_value, prototype;
  nb::handle order, kind, device, queue, resource, fallback, alignment;
  bool has_keywords = false;
};
using RequestMember = nb::handle ArrayRequest::*;

struct ArraySignature {
  const char* name;
  std::span<const RequestMember> positional;
  std::size_t required_count;  // of `positional`
  bool has_fill_value;
  bool is_like;  // takes a prototype, and a shape by keyword
};

// Like read_request, for calls with keyword arguments or a wrong number of arguments.
[[nodiscard]] ArrayRequest read_any_request(const ArraySignature& signature,
                                            PyObject* const* arguments, std::size_t positional,
                                            PyObject* names);

// TypeError for too many or too few arguments, one passed twice, or an unknown keyword. `usm_type`
// and `sycl_queue` are dpnp's names of kind and queue. Inline, so that a call without keywords and
// with a constant signature compiles to a few stores.
[[nodiscard]] inline ArrayRequest read_request(const ArraySignature& signature,
                                               PyObject* const* arguments, std::size_t positional,
                                               PyObject* names) {
  if (names != nullptr || positional < signature.required_count ||
      positional > signature.positional.size()) {
    return read_any_request(signature, arguments, positional, names);
  }
  ArrayRequest read;
  for (std::size_t i = 0; i < positional; ++i) {
    read.*signature.positional[i] = arguments[i];
  }
  return read;
}

}  // namespace isthmus::python
