// SPDX-License-Identifier: Apache-2.0
#include "core/byte_counts.hpp"

#include <cmath>

#include "core/bindings.hpp"
#include "core/current.hpp"
#include "core/errors.hpp"
#include "core/objects.hpp"

namespace isthmus::python {
namespace {

std::size_t text_to_bytes(nb::handle text, const char* name, nb::handle device_object,
                          isthmus_kind_t kind) {
  const char* const chars = utf8_of(text);
  auto* const device = device_object.is_valid() ? device_of(device_object)->raw.get() : nullptr;
  std::uint64_t bytes = 0;
  if (isthmus_bytes_parse(chars, device, kind, &bytes) != ISTHMUS_OK) {
    raise_python(PyExc_ValueError, "%s: %s", name, isthmus_error_message());
  }
  return to_size(nb::int_(bytes), name);
}

// A float that is a whole number as an int; not valid for other floats and other objects.
nb::object whole_number(nb::handle value) {
  if (PyFloat_Check(value.ptr()) == 0) {
    return {};
  }
  const double number = PyFloat_AS_DOUBLE(value.ptr());
  if (!std::isfinite(number) || number != std::trunc(number)) {
    return {};
  }
  return steal_or_raise(PyLong_FromDouble(number));
}

std::size_t named_bytes(nb::handle value, nb::handle name) {
  return to_bytes(value, utf8_of(name));
}

std::size_t parse_bytes(nb::handle value, nb::handle device, nb::handle kind) {
  return to_bytes(value, "value", device.is_none() ? nb::object{} : to_device(device),
                  to_kind(kind));
}

}  // namespace

std::size_t convert_to_bytes(nb::handle value, const char* name, nb::handle device,
                             isthmus_kind_t kind) {
  if (PyUnicode_Check(value.ptr()) != 0) {
    return text_to_bytes(value, name, device, kind);
  }
  std::optional<nb::python_error> cause;
  nb::object number = whole_number(value);
  if (!number.is_valid()) {
    number = as_integer(value, &cause);
  }
  if (!number.is_valid()) {
    raise_type_error(cause,
                     "%s must be an integer number of bytes or text like \"2GiB\" or \"80%%\", "
                     "not %R",
                     name, value.ptr());
  }
  return to_size(number, name);
}

void bind_byte_counts(nb::module_& module) {
  module.def("_to_bytes", &named_bytes, nb::arg("value").none(), nb::arg("name"),
             nb::sig("def _to_bytes(value: object, name: str) -> int"));
  module.def("parse_bytes", &parse_bytes, nb::arg("value").none(), nb::arg("device") = nb::none(),
             nb::arg("kind").none() = "device",
             nb::sig("def parse_bytes(value: ByteCount, device: Device | str | None = None, "
                     "kind: str = 'device') -> int"),
             "A number of bytes, as every function that needs one accepts it: an integer, a float\n"
             "that is a whole number, or text. \"1.5GB\" is 1.5 * 10**9 bytes and \"1.5GiB\" is\n"
             "1.5 * 2**30; kB to TB and KiB to TiB, in upper or lower case, with or without a\n"
             "space. \"80%\" is that share of the total memory of `kind` that `device` has.\n\n"
             "Raises ValueError for other text, such as the ambiguous \"64M\".");
}

}  // namespace isthmus::python
