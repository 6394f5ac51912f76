// SPDX-License-Identifier: Apache-2.0
// Freeing arrays, the property names of dpnp's arrays for their location, and printing.

#include "arguments.hpp"
#include "current.hpp"
#include "gil.hpp"
#include "oneapi_numbers.hpp"
#include "sycl_objects.hpp"
#include "typed_array.hpp"

namespace isthmus::python {
namespace {

// One freed buffer that stands in for the memory of all freed arrays: an array's own queue may be
// closed.
const BufferHandle& freed_buffer() {
  static BufferHandle& buffer = *new BufferHandle;  // Guarded by the interpreter's lock.
  if (!buffer) {
    DeviceHandle host;
    QueueHandle queue;
    check(try_find_device("host", host));
    check(isthmus_queue_default(host.get(), queue.out()));
    check(isthmus_buffer_create(0, ISTHMUS_KIND_HOST, 0, queue.get(), nullptr, buffer.out()));
    isthmus_buffer_free(buffer.get());
  }
  return buffer;
}

// A freed Buffer of the same size to take its place: operations on the array then raise as on any
// freed Buffer.
nb::object make_closed_buffer(const Buffer& buffer) {
  return make_instance<Buffer>(types.buffer, BufferHandle::retained(freed_buffer().get()),
                               buffer.queue_object, nb::object{}, buffer.kind, buffer.nbytes,
                               buffer.read_only);
}

// Drops the reference to the Buffer and does not free it: views, a unified buffer and other owners
// may still refer to it. In a forked child nothing is freed, as with Buffers.
void free_array(TypedArray& self) {
  if (!is_forked_child() && !is_freed(self)) {
    const nb::object held = self.memory.object();  // creating the stand-in may run any code
    self.memory.replace(make_closed_buffer(*nb::inst_ptr<Buffer>(held)));
  }
}

nb::object header_of(const TypedArray& self) {
  const auto& buffer = buffer_in(self);
  const auto& layout = *self.layout;
  const auto device_name = describe(*device_of(queue_of_buffer(buffer).device_object));
  const nb::object gaps = nb::steal(
      layout.is_c_dense ? PyUnicode_FromString("")
                        : PyUnicode_FromFormat(", strides %R", to_tuple(layout.strides).ptr()));
  return nb::steal(PyUnicode_FromFormat("isthmus.Array %U %R %s%U, %zu bytes%s on %s%s",
                                        kind_name(buffer.kind).ptr(), to_tuple(layout.shape).ptr(),
                                        layout.type->name, gaps.ptr(), layout.nbytes,
                                        is_freed(self) ? ", freed," : "", device_name.c_str(),
                                        is_read_only(self) ? ", read-only" : ""));
}

// From isthmus._printing.
nb::object printed(const char* text, nb::handle self) {
  return nb::module_::import_("isthmus._printing").attr(text)(self);
}

void bind_end(nb::class_<TypedArray>& bound) {
  bound
      .def("free", &free_array,
           "Ends this array at once: using it afterwards raises ClosedError, freeing it again\n"
           "does nothing. Its views, its exports (a NumPy array over it, a memoryview, DLPack)\n"
           "and a Buffer that is referenced by itself stay valid. The memory is returned when\n"
           "the last of them is gone and the last operation on it has ended. Never blocks.")
      .def("unsafe_free", &free_array, "Same as free(): its name in oneAPI.jl.")
      .def_prop_ro("freed", &is_freed, "Whether it, or all of its memory, was freed.")
      .def(
          "__enter__",
          [](nb::object self) {
            require_live(require_array(self, "self"));
            return self;
          },
          nb::sig("def __enter__(self) -> Self"))
      .def(
          "__exit__", [](TypedArray& self, nb::args) { free_array(self); },
          nb::sig("def __exit__(self, *exc: object) -> None"));
}

template <isthmus_kind_t Kind>
bool is_of_kind(const TypedArray& self) noexcept {
  return self.memory.kind() == Kind;
}

// dpnp accepts no other type as an array's queue.
nb::object sycl_queue(const TypedArray& self) {
  const nb::object own = buffer_in(self).queue_object;
  const nb::object dpctl = loaded_dpctl();
  if (dpctl.is_none() || !is_sycl_queue(*queue_of(own))) {
    return own;
  }
  return dpctl.attr("SyclQueue")(sycl_capsule(*queue_of(own)));
}

void bind_location(nb::class_<TypedArray>& bound) {
  bound
      .def_prop_ro("is_device", &is_of_kind<ISTHMUS_KIND_DEVICE>, "Whether its kind is \"device\".")
      .def_prop_ro("is_shared", &is_of_kind<ISTHMUS_KIND_SHARED>, "Whether its kind is \"shared\".")
      .def_prop_ro("is_host", &is_of_kind<ISTHMUS_KIND_HOST>, "Whether its kind is \"host\".")
      .def_prop_ro(
          "usm_type", [](const TypedArray& self) { return kind_name(self.memory.kind()); },
          nb::sig("def usm_type(self) -> str"), "dpnp's name for `kind`.")
      .def_prop_ro(
          "sycl_queue", &sycl_queue, nb::sig("def sycl_queue(self) -> Any"),
          "dpnp's name for `queue`. If dpctl is imported, a queue of the SYCL backend is a\n"
          "dpctl.SyclQueue.")
      .def_prop_ro(
          "sycl_device",
          [](const TypedArray& self) { return queue_of_buffer(buffer_in(self)).device_object; },
          nb::sig("def sycl_device(self) -> Device"), "dpnp's name for `device`.")
      .def_prop_ro(
          "sycl_context",
          [](const TypedArray& self) { return queue_of_buffer(buffer_in(self)).context_object; },
          nb::sig("def sycl_context(self) -> Context"), "The context of its queue.");
}

void bind_text(nb::class_<TypedArray>& bound) {
  bound
      .def("_header", &header_of, nb::sig("def _header(self) -> str"),
           "One line that says what it is and where.")
      .def(
          "__repr__", [](nb::handle self) { return printed("to_repr", self); },
          nb::sig("def __repr__(self) -> str"))
      .def(
          "__str__", [](nb::handle self) { return printed("to_text", self); },
          nb::sig("def __str__(self) -> str"))
      .def(
          "_repr_html_", [](nb::handle self) { return printed("to_html", self); },
          nb::sig("def _repr_html_(self) -> str"));
}

}  // namespace

void bind_array_lifetime(nb::class_<TypedArray>& bound) {
  bind_end(bound);
  bind_location(bound);
  bind_text(bound);
}

}  // namespace isthmus::python
