// SPDX-License-Identifier: Apache-2.0
// Freeing arrays, the property names of dpnp's arrays for their location, and printing.

#include "array/array.hpp"
#include "array/bindings.hpp"
#include "core/device_search.hpp"
#include "core/gil.hpp"
#include "core/interned.hpp"
#include "core/sycl_objects.hpp"
#include "interop/oneapi_numbers.hpp"

namespace isthmus::python {
namespace {

// One freed buffer, on the host's default queue, that replaces the memory of every freed array: an
// array's own queue may be closed.
const BufferHandle& freed_buffer() {
  static BufferHandle& buffer = *new BufferHandle;  // guarded by the interpreter's lock
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

// A freed Buffer of the same size, which replaces `buffer` in the array: operations on the array
// then raise ClosedError as on any freed Buffer.
nb::object make_closed_buffer(const Buffer& buffer) {
  return make_instance<Buffer>(types.buffer, BufferHandle::share(freed_buffer().get()),
                               buffer.queue_object, nb::object{}, buffer.kind, buffer.nbytes,
                               buffer.read_only);
}

// Drops the reference to the Buffer and does not free it: views, a unified buffer and other owners
// may still refer to it. In a forked child nothing is freed, as with Buffers.
void free_array(TypedArray& self) {
  if (!is_forked_child() && !is_freed(self)) {
    const nb::object held = self.memory.object();  // creating the freed Buffer may run any code
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

// Calls a function of isthmus._printing.
nb::object call_printing(const char* function, nb::handle self) {
  return nb::module_::import_("isthmus._printing").attr(function)(self);
}

void bind_free(nb::class_<TypedArray>& bound) {
  bound
      .def("free", &free_array,
           "Frees this array: using it afterwards raises ClosedError, freeing it again does\n"
           "nothing. Its views, its exports (a NumPy array over it, a memoryview, DLPack) and a\n"
           "Buffer that is referenced elsewhere remain valid. The memory is returned after the\n"
           "last of them was released and the last operation on it has completed. Never blocks.")
      .def("unsafe_free", &free_array, "Same as free(): its name in oneAPI.jl.")
      .def_prop_ro("freed", &is_freed, "Whether the array, or all of its memory, was freed.");
  const auto enter = [](nb::handle self) { require_live(require_array(self, "self")); };
  bind_scope<TypedArray>(bound, enter, &free_array);
}

template <isthmus_kind_t Kind>
bool is_of_kind(const TypedArray& self) noexcept {
  return self.memory.kind() == Kind;
}

// The queue, as a dpctl.SyclQueue if it is of the SYCL backend and dpctl is imported, because dpnp
// accepts no other type.
nb::object sycl_queue(const TypedArray& self) {
  const nb::object queue = buffer_in(self).queue_object;
  const nb::object dpctl = loaded_dpctl();
  if (dpctl.is_none() || !is_sycl_queue(*queue_of(queue))) {
    return queue;
  }
  return dpctl.attr("SyclQueue")(sycl_capsule(*queue_of(queue)));
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
           "One line that describes the array and its location.")
      .def(
          "__repr__", [](nb::handle self) { return call_printing("to_repr", self); },
          nb::sig("def __repr__(self) -> str"))
      .def(
          "__str__", [](nb::handle self) { return call_printing("to_text", self); },
          nb::sig("def __str__(self) -> str"))
      .def(
          "_repr_html_", [](nb::handle self) { return call_printing("to_html", self); },
          nb::sig("def _repr_html_(self) -> str"));
}

}  // namespace

void bind_array_lifetime(nb::class_<TypedArray>& bound) {
  bind_free(bound);
  bind_location(bound);
  bind_text(bound);
}

}  // namespace isthmus::python
