// SPDX-License-Identifier: Apache-2.0
// Properties of Array and its memory.

#include "array/array.hpp"
#include "array/bindings.hpp"
#include "core/interned.hpp"

namespace isthmus::python {
namespace {

nb::object address_of(const TypedArray& self) {
  return nb::steal(PyLong_FromVoidPtr(
      const_cast<void*>(view_of(self).address_in(info_of(buffer_in(self)).pointer))));
}

nb::object moved_to_queue(nb::handle self, nb::handle queue) {
  const auto& array = require_array(self, "x");
  const nb::object held = array.memory.object();
  return make_instance<TypedArray>(
      types.typed_array, ArrayMemory{on_queue(held, queue)}, array.layout, array.offset,
      array.base.is_valid() ? array.base : nb::borrow(self), array.is_locked);
}

void bind_layout(nb::class_<TypedArray>& bound) {
  bound
      .def_prop_ro(
          "shape", [](const TypedArray& self) { return to_tuple(self.layout->shape); },
          nb::sig("def shape(self) -> tuple[int, ...]"), "Number of elements along each dimension.")
      .def_prop_ro(
          "strides", [](const TypedArray& self) { return to_tuple(self.layout->strides); },
          nb::sig("def strides(self) -> tuple[int, ...]"),
          "Bytes from one element to the next along each dimension.")
      .def_prop_ro(
          "dtype", [](const TypedArray& self) { return nb::borrow(dtype_of(*self.layout->type)); },
          nb::sig("def dtype(self) -> Any"), "The numpy.dtype of the elements. Imports NumPy.")
      .def_prop_ro(
          "ndim", [](const TypedArray& self) { return self.layout->shape.size(); },
          "Number of dimensions, at most 64.")
      .def_prop_ro(
          "size", [](const TypedArray& self) { return self.layout->size; }, "Number of elements.")
      .def_prop_ro(
          "itemsize", [](const TypedArray& self) { return self.layout->item; },
          "Bytes of an element.")
      .def_prop_ro(
          "nbytes", [](const TypedArray& self) { return self.layout->nbytes; },
          "Bytes of all elements, without gaps between them.")
      .def_prop_ro(
          "offset", [](const TypedArray& self) { return self.offset; },
          "Bytes from the buffer's start to the first element.")
      .def_prop_ro(
          "base",
          [](const TypedArray& self) { return self.base.is_valid() ? self.base : nb::none(); },
          nb::sig("def base(self) -> Array | None"),
          "The array that this view shares its memory with, which is not a view itself. The view\n"
          "keeps it alive.")
      .def_prop_ro("ptr", &address_of, nb::sig("def ptr(self) -> int"),
                   "The address of the first element. Raises ClosedError if the buffer was freed.");
}

void bind_memory_of_array(nb::class_<TypedArray>& bound) {
  bound
      .def_prop_ro(
          "buffer", [](const TypedArray& self) { return self.memory.object(); },
          nb::sig("def buffer(self) -> Buffer"), "The array's memory, which it keeps alive.")
      .def_prop_ro(
          "kind", [](const TypedArray& self) { return kind_name(self.memory.kind()); },
          nb::sig("def kind(self) -> str"), "\"device\", \"shared\" or \"host\".")
      .def_prop_ro(
          "queue", [](const TypedArray& self) { return buffer_in(self).queue_object; },
          nb::sig("def queue(self) -> Queue"), "The buffer's queue.")
      .def_prop_ro(
          "device",
          [](const TypedArray& self) { return queue_of_buffer(buffer_in(self)).device_object; },
          nb::sig("def device(self) -> Device"), "The device of its queue.")
      .def_prop_ro(
          "read_only", [](const TypedArray& self) { return is_read_only(self); },
          "Whether writes are rejected.")
      .def("on_queue", &moved_to_queue, nb::arg("queue").none(),
           nb::sig("def on_queue(self, queue: Queue) -> Array"),
           "A view of all elements whose operations run on `queue`. Raises WrongContextError for\n"
           "a queue of another context.")
      .def(
          "record",
          [](const TypedArray& self, nb::handle user) { record_use(buffer_in(self), user); },
          nb::arg("queue_or_event").none(),
          nb::sig("def record(self, queue_or_event: Queue | Event) -> None"),
          "Declares that external work uses the memory: see Buffer.record.");
}

}  // namespace

void bind_array_properties(nb::class_<TypedArray>& bound) {
  bind_layout(bound);
  bind_memory_of_array(bound);
}

}  // namespace isthmus::python
