// SPDX-License-Identifier: Apache-2.0
// The classes of isthmus.memory: Buffer with the names and conventions of dpctl.memory.

#include <algorithm>

#include "buffer/buffer.hpp"
#include "core/arguments.hpp"
#include "core/current.hpp"
#include "core/interned.hpp"
#include "interop/bindings.hpp"
#include "interop/exchange.hpp"
#include "interop/usm_arguments.hpp"
#include "memory/sizes.hpp"
#include "transfer/interfaces.hpp"
#include "transfer/transfers.hpp"

namespace isthmus::python {
namespace {

struct Memory : Buffer {
  using Buffer::Buffer;
};
template <isthmus_kind_t Kind>
struct MemoryOf : Memory {
  using Memory::Memory;
};

nb::object optional_object(nb::handle argument) {
  return argument.is_none() ? nb::object{} : nb::borrow(argument);
}

[[noreturn]] void raise_wrong_kind(isthmus_kind_t actual, isthmus_kind_t requested) {
  raise_python(PyExc_ValueError,
               "the memory is of kind '%U', not '%U': pass copy=True to copy it into new memory",
               kind_name(actual).ptr(), kind_name(requested).ptr());
}

void construct_new(Buffer* self, isthmus_kind_t kind, nb::handle size, nb::handle alignment,
                   nb::handle queue) {
  nb::object queue_object = to_queue(optional_object(queue), nb::handle{});
  const auto& target_queue = *queue_of(queue_object);
  const nb::object nbytes = is_integral(size)
                                ? to_integer(size, "nbytes")
                                : nb::int_(to_allocation_size(size, "nbytes", kind, target_queue));
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(nbytes.ptr(), &overflow);
  if (overflow < 0 || (overflow == 0 && number <= 0)) {
    raise_python(PyExc_ValueError,
                 "nbytes must be positive, not %U: only isthmus.Buffer can be empty",
                 shown_integer(nbytes).ptr());
  }
  const auto allocation_size = overflow == 0
                                   ? static_cast<std::size_t>(number)
                                   : to_allocation_size(nbytes, "nbytes", kind, target_queue);
  construct_buffer(self, allocation_size, kind, to_alignment(alignment), std::move(queue_object),
                   nullptr, KindsAllowed::requested_only);
}

void construct_copy(Buffer* self, isthmus_kind_t kind, nb::handle source, nb::handle alignment,
                    nb::handle queue) {
  const auto& source_buffer = *buffer_of(source);
  const nb::object queue_object =
      queue.is_none() ? source_buffer.queue_object : to_queue(queue, nb::handle{});
  construct_buffer(self, source_buffer.nbytes, kind, to_alignment(alignment), queue_object, nullptr,
                   KindsAllowed::requested_only);
  try {
    Endpoint destination = buffer_endpoint(*self);
    Endpoint source_endpoint = buffer_endpoint(source_buffer);
    copy_endpoints(destination, source_endpoint, source_buffer.nbytes);
  } catch (...) {
    self->~Buffer();  // nanobind does not destroy an object whose constructor threw
    throw;
  }
}

nb::object source_of(nb::handle other) {
  if (buffer_of(other) != nullptr) {
    return nb::borrow(other);
  }
  auto interface = read_interface(other, Access::write);
  if (!interface) {
    raise_python(PyExc_ValueError,
                 "%.100s is not a size or a memory object and has no __sycl_usm_array_interface__",
                 Py_TYPE(other.ptr())->tp_name);
  }
  return adopt_interface(other, *std::move(interface));
}

// A number of bytes, as opposed to an object with memory.
bool is_byte_count(nb::handle object) {
  return is_integral(object) || PyUnicode_Check(object.ptr()) != 0 ||
         PyFloat_Check(object.ptr()) != 0;
}

void construct_memory(Buffer* self, isthmus_kind_t kind, nb::handle other, nb::handle alignment,
                      nb::handle queue, bool copies) {
  if (is_byte_count(other)) {
    construct_new(self, kind, other, alignment, queue);
    return;
  }
  const nb::object source = source_of(other);
  if (copies) {
    construct_copy(self, kind, source, alignment, queue);
    return;
  }
  const auto actual_kind = buffer_of(source)->kind;
  if (actual_kind != kind) {
    raise_wrong_kind(actual_kind, kind);
  }
  construct_alias(self, source, optional_object(queue));
}

nb::object as_usm_memory(nb::handle object) {
  const nb::object source = source_of(object);
  const auto kind = buffer_of(source)->kind;
  const nb::handle type = types.memory[kind];
  return make_buffer(type, [&](Buffer* self) { construct_alias(self, source, nb::handle{}); });
}

// The foreign object that the memory first came from, if there is one.
nb::object reference_of(const Buffer& self) {
  nb::object reference = self.base;
  while (reference.is_valid() && buffer_of(reference) != nullptr) {
    reference = buffer_of(reference)->base;
  }
  return reference.is_valid() ? reference : nb::none();
}

isthmus_kind_t kind_in(const Buffer& self, nb::handle syclobj) {
  if (syclobj.is_none()) {
    return self.kind;
  }
  const auto* context = queue_of(syclobj) != nullptr ? context_of(queue_of(syclobj)->context_object)
                                                     : context_of(syclobj);
  if (context == nullptr) {
    raise_wrong_type(syclobj, "syclobj must be a Context, a Queue or None");
  }
  if (isthmus_context_key(context->raw.get()) == queue_of_buffer(self).context_key) {
    return self.kind;
  }
  return read_info<isthmus_pointer_info_t>(isthmus_pointer_info, context->raw.get(),
                                           info_of(self).pointer)
      .kind;
}

// `nbytes`, or the size of the destination if that is smaller; None if it exports no view.
nb::object size_to_copy(nb::handle destination, std::size_t nbytes) {
  Py_buffer view;
  if (PyObject_GetBuffer(destination.ptr(), &view, PyBUF_FULL_RO) != 0) {
    PyErr_Clear();
    return nb::none();
  }
  const auto capacity = static_cast<std::size_t>(view.len);
  PyBuffer_Release(&view);
  return nb::int_(std::min(capacity, nbytes));
}

// A destination that is smaller than the memory is filled from the start of the memory.
nb::object copy_to_host(nb::handle self, nb::handle destination) {
  if (destination.is_none()) {
    return to_numpy(self);
  }
  static_cast<void>(copy({destination, self, size_to_copy(destination, buffer_of(self)->nbytes),
                          nb::int_(0), nb::int_(0)},
                         {nb::handle{}, nb::handle{}, true}));
  return nb::borrow(destination);
}

void copy_from(nb::handle self, nb::handle source) {
  static_cast<void>(copy({self, source, nb::none(), nb::int_(0), nb::int_(0)},
                         {nb::handle{}, nb::handle{}, true}));
}

void copy_from_host(nb::handle self, nb::handle source) {
  if (PyObject_CheckBuffer(source.ptr()) == 0) {
    raise_wrong_type(source, "copy_from_host() needs an object with the buffer protocol");
  }
  copy_from(self, source);
}

void copy_from_device(nb::handle self, nb::handle source) {
  const nb::object memory = source_of(source);
  copy_from(self, memory);
}

void set_bytes(nb::handle self, nb::handle value) {
  static_cast<void>(
      fill({self, nb::int_(0), nb::none()}, value, {nb::handle{}, nb::handle{}, true}));
}

nb::object size_of(const Buffer& self) { return nb::steal(PyLong_FromSize_t(self.nbytes)); }
nb::object queue_of_memory(const Buffer& self) { return self.queue_object; }
nb::object device_of_memory(const Buffer& self) { return queue_of_buffer(self).device_object; }
nb::object context_of_memory(const Buffer& self) { return queue_of_buffer(self).context_object; }

// The descriptor has checked the type of `self`.
template <nb::object (*Get)(const Buffer&)>
PyObject* get(PyObject* self, void*) noexcept {
  return result_of([self] {
    return Get(nb::inst_ready(self) ? *nb::inst_ptr<Buffer>(self) : require_buffer(self));
  });
}

// Properties that programs for SYCL read in loops, as C getters: a property object and the call of
// its function cost 15 ns more. Their types are in stub_patterns.nb.
PyGetSetDef memory_getters[] = {
    {"nbytes", &get<size_of>, nullptr, "Its size in bytes.", nullptr},
    {"size", &get<size_of>, nullptr, "Its size in bytes.", nullptr},
    {"_pointer", &get<address_of>, nullptr, "Its address.", nullptr},
    {"_queue", &get<queue_of_memory>, nullptr, "Its queue.", nullptr},
    {"_context", &get<context_of_memory>, nullptr, "Its context.", nullptr},
    {"sycl_queue", &get<queue_of_memory>, nullptr, "Its queue.", nullptr},
    {"sycl_device", &get<device_of_memory>, nullptr, "The device of its queue.", nullptr},
    {"sycl_context", &get<context_of_memory>, nullptr, "The context that the memory belongs to.",
     nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot memory_slots[] = {{Py_tp_getset, memory_getters}, {0, nullptr}};

void bind_names(nb::class_<Memory, Buffer>& bound) {
  bound
      .def_prop_ro(
          "reference_obj", &reference_of, nb::sig("def reference_obj(self) -> object"),
          "The foreign object that the memory first came from; None if it is Isthmus' own.")
      .def(
          "get_usm_type",
          [](const Buffer& self, nb::handle syclobj) { return kind_name(kind_in(self, syclobj)); },
          nb::arg("syclobj") = nb::none(),
          nb::sig("def get_usm_type(self, syclobj: Context | Queue | None = None) -> str"),
          "\"device\", \"shared\" or \"host\"; \"unknown\" if the context does not know the "
          "memory.")
      .def(
          "get_usm_type_enum",
          [](const Buffer& self, nb::handle syclobj) { return kind_in(self, syclobj); },
          nb::arg("syclobj") = nb::none(),
          nb::sig("def get_usm_type_enum(self, syclobj: Context | Queue | None = None) -> int"),
          "The kind as a number: 1 device, 2 shared, 3 host, 0 unknown.")
      .def("__sizeof__", [](const Buffer& self) { return self.nbytes; });
}

void bind_copies(nb::class_<Memory, Buffer>& bound) {
  bound
      .def("copy_to_host", &copy_to_host, nb::arg("obj") = nb::none(),
           nb::sig("def copy_to_host(self, obj: object = None) -> Any"),
           "Copies the bytes into `obj`, any writable contiguous buffer, and returns it. Later\n"
           "bytes of `obj` are unchanged, and a smaller `obj` is filled from the start of\n"
           "this memory. None: into a new uint8 ndarray. Blocks. Raises ReadOnlyError,\n"
           "ValueError if `obj` is not contiguous.")
      .def("copy_from_host", &copy_from_host, nb::arg("obj").none(),
           nb::sig("def copy_from_host(self, obj: object) -> None"),
           "Copies all bytes of `obj`, a contiguous buffer of any type and shape, which may be\n"
           "read-only, to the start of this memory. Blocks. Raises OutOfRangeError (a\n"
           "ValueError) if it is longer, ValueError if it is not contiguous, TypeError if it is\n"
           "not a buffer.")
      .def("copy_from_device", &copy_from_device, nb::arg("obj").none(),
           nb::sig("def copy_from_device(self, obj: object) -> None"),
           "Copies all bytes of another memory object, or of an object with\n"
           "__sycl_usm_array_interface__, of any context, to the start of this memory. Blocks.\n"
           "Raises OutOfRangeError (a ValueError) if it is longer.")
      .def("memset", &set_bytes, nb::arg("val").none() = 0,
           nb::sig("def memset(self, val: int = 0) -> None"),
           "Sets every byte to `val`, 0..255 (ValueError). Blocks, and releases the\n"
           "interpreter's lock.");
}

// The constructor without nanobind's dispatch, which would double its cost.
template <isthmus_kind_t Kind>
PyObject* memory_vectorcall(PyObject* type, PyObject* const* arguments, std::size_t count,
                            PyObject* names) noexcept {
  return result_of([=] {
    const auto request = read_memory_arguments(arguments, count, names);
    return make_buffer(type, [&](Buffer* self) {
      construct_memory(self, Kind, request.other,
                       request.alignment.is_valid() ? request.alignment : nb::handle(Py_None),
                       request.queue, request.copy.is_valid() && to_flag(request.copy, "copy"));
    });
  });
}

template <isthmus_kind_t Kind>
void bind_kind(nb::module_& module, const char* name, const char* doc) {
  static PyType_Slot slots[] = {
      {Py_tp_vectorcall, reinterpret_cast<void*>(&memory_vectorcall<Kind>)}, {0, nullptr}};
  types.memory[Kind] =
      nb::class_<MemoryOf<Kind>, Memory>(module, name, nb::type_slots(slots), nb::pooled(), doc)
          .def(
              "__init__",
              [](MemoryOf<Kind>* self, nb::handle other, nb::handle alignment, nb::handle queue,
                 nb::handle copies) {
                construct_memory(self, Kind, other, alignment, queue, to_flag(copies, "copy"));
              },
              nb::arg("other").none(), nb::kw_only(), nb::arg("alignment").none() = 0,
              nb::arg("queue") = nb::none(), nb::arg("copy").none() = false,
              nb::sig(
                  "def __init__(self, other: object, *, alignment: int = 0, queue: Queue | None = "
                  "None, copy: bool = False) -> None"));
}

#define ISTHMUS_MEMORY_DOC(name, kind)                                                            \
  name "(other, *, alignment=0, queue=None, copy=False): memory of kind \"" kind                  \
       "\".\n\n"                                                                                  \
       "`other` a number > 0: that many new bytes on `queue` (None: the current one),\n"          \
       "`alignment` a power of two, 0 or less: the device's own. `other` a memory object or\n"    \
       "anything with __sycl_usm_array_interface__: the same memory, kept alive, if it is of\n"   \
       "this kind, else ValueError; with copy=True a copy in new memory of this kind, on\n"       \
       "`queue` (None: that of `other`).\n\n"                                                     \
       "Otherwise a Buffer. Raises ValueError for 0 or less, USMAllocationError if there is no\n" \
       "memory."

}  // namespace

nb::object adopt_interface(nb::handle object, ArrayInterface interface) {
  return make_buffer(types.buffer, [&](Buffer* self) {
    construct_adopted(self, interface.memory, std::move(interface.queue), nb::borrow(object));
  });
}

void bind_usm_memory(nb::module_& module) {
  nb::class_<Memory, Buffer> bound(module, "_Memory", nb::type_slots(memory_slots),
                                   "Base of the three classes of isthmus.memory.");
  types.memory[0] = bound;
  bind_names(bound);
  bind_copies(bound);
  bind_kind<ISTHMUS_KIND_DEVICE>(module, "MemoryUSMDevice",
                                 ISTHMUS_MEMORY_DOC("MemoryUSMDevice", "device"));
  bind_kind<ISTHMUS_KIND_SHARED>(module, "MemoryUSMShared",
                                 ISTHMUS_MEMORY_DOC("MemoryUSMShared", "shared"));
  bind_kind<ISTHMUS_KIND_HOST>(module, "MemoryUSMHost",
                               ISTHMUS_MEMORY_DOC("MemoryUSMHost", "host"));
  module.def(
      "as_usm_memory", &as_usm_memory, nb::arg("obj").none(),
      nb::sig("def as_usm_memory(obj: object) -> MemoryUSMDevice | MemoryUSMShared | "
              "MemoryUSMHost"),
      "The memory of any object with __sycl_usm_array_interface__, without a copy, as the class\n"
      "of its kind. Raises ValueError for a dictionary with impossible values or a pointer that\n"
      "its context does not know, OutOfRangeError (a ValueError) past either end of the\n"
      "allocation, TypeError for entries of a wrong type.");
}

}  // namespace isthmus::python
