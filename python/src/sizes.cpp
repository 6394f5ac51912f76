#include "sizes.hpp"

#include "arguments.hpp"
#include "current.hpp"
#include "errors.hpp"

namespace isthmus::python {

void raise_too_large(nb::handle reason, isthmus_kind_t kind, const queue& queue) {
  raise_python(error_type(ISTHMUS_ERROR_OUT_OF_MEMORY), "%U, nor in any '%U' memory of %s",
               reason.ptr(), kind_name(kind).ptr(),
               describe(*device_of(queue.device_object)).c_str());
}

std::size_t to_allocation_size(nb::handle value, const char* name, isthmus_kind_t kind,
                               const queue& queue) {
  const nb::object integer = to_integer(value, name);
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(integer.ptr(), &overflow);
  if (overflow == 0 && number >= 0) {
    return static_cast<std::size_t>(number);
  }
  if (overflow > 0) {
    const nb::object reason = nb::steal(PyUnicode_FromFormat("%s of %U does not fit in 63 bits",
                                                             name, shown_integer(integer).ptr()));
    raise_too_large(reason, kind, queue);
  }
  return to_size(integer, name);
}

}  // namespace isthmus::python
