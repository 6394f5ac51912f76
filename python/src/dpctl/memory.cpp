// SPDX-License-Identifier: Apache-2.0
// The three classes of isthmus.compat.dpctl.memory. They are subclasses of dpctl's classes, created
// when that module is imported; their memory and copies are those of Isthmus.

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <string_view>

#include "core/errors.hpp"
#include "core/gil.hpp"
#include "dpctl/make.hpp"
#include "dpctl/numbers.hpp"
#include "dpctl/queues.hpp"
#include "interop/exchange.hpp"

namespace isthmus::python {
namespace {

DpctlGetter dpctl_get_data_ptr, dpctl_get_opaque_ptr;

void expose(DpctlMemory& memory) noexcept {
  if (auto* block = dpctl_block_of(memory); block != nullptr) {
    expose_address(*block);
  }
}

void* expose_and_get_data_ptr(DpctlMemory* self) noexcept {
  expose(*self);
  return dpctl_get_data_ptr(self);
}

// Without memory for a shared pointer this returns null, which means that there is none: the caller
// then keeps the object alive instead.
void* expose_and_get_opaque_ptr(DpctlMemory* self) noexcept {
  expose(*self);
  const auto* const first_owner = as_isthmus(*self)->first_owner;
  const std::atomic_ref owner{self->owner};
  if (first_owner != nullptr && owner.load(std::memory_order_acquire) == nullptr) {
    auto created = std::unique_ptr<std::shared_ptr<void>>{new (std::nothrow)
                                                              std::shared_ptr<void>(*first_owner)};
    std::shared_ptr<void>* expected = nullptr;
    if (owner.compare_exchange_strong(expected, created.get(), std::memory_order_acq_rel)) {
      static_cast<void>(created.release());
    }
  }
  return dpctl_get_opaque_ptr(self);
}

void hook_functions(nb::handle base) {
  const nb::object vtable = base.attr("__dict__")["__pyx_vtable__"];
  auto* const dpctl_functions = static_cast<void**>(PyCapsule_GetPointer(vtable.ptr(), nullptr));
  if (dpctl_functions == nullptr) {
    raise_set();
  }
  dpctl_get_data_ptr = reinterpret_cast<DpctlGetter>(dpctl_functions[k_get_data_ptr]);
  dpctl_get_opaque_ptr = reinterpret_cast<DpctlGetter>(dpctl_functions[k_get_opaque_ptr]);
  static void* functions[k_function_count];
  std::copy_n(dpctl_functions, k_function_count, functions);
  functions[k_get_data_ptr] = reinterpret_cast<void*>(&expose_and_get_data_ptr);
  functions[k_get_opaque_ptr] = reinterpret_cast<void*>(&expose_and_get_opaque_ptr);
  dpctl.functions = functions;
}

PyObject* construct(PyTypeObject* type, PyObject* arguments, PyObject* named) noexcept {
  return result_of([=] { return make_dpctl(type, read_memory_arguments(arguments, named)); });
}

// The constructor without a tuple and a dictionary, for the classes themselves and not for Python
// subclasses.
PyObject* construct_fast(PyObject* type, PyObject* const* arguments, std::size_t count,
                         PyObject* names) noexcept {
  return result_of([=] {
    return make_dpctl(reinterpret_cast<PyTypeObject*>(type),
                      read_memory_arguments(arguments, count, names));
  });
}

// -- copies, by dpctl's rules ---------------------------------------------------------------------

// Converts a contiguous, one-dimensional buffer of unsigned bytes.
Endpoint to_host_endpoint(nb::handle object, Access access, const char* role) {
  Endpoint endpoint;
  endpoint.memory = std::make_unique<Pinned>();
  auto& view = endpoint.memory->view;
  const int flags = PyBUF_STRIDES | PyBUF_FORMAT | (access == Access::write ? PyBUF_WRITABLE : 0);
  if (PyObject_GetBuffer(object.ptr(), &view, flags) != 0) {
    raise_set();
  }
  std::string_view format = view.format != nullptr ? view.format : "B";
  format.remove_prefix(std::min(format.find_first_not_of("@=<>!"), format.size()));
  const bool are_bytes = format == "B" || format == "c" || format == "?";
  if (view.ndim == 1 && are_bytes && view.len > 1 && view.strides != nullptr &&
      view.strides[0] != 1) {
    raise_python(PyExc_ValueError,
                 "the %s must be a contiguous one-dimensional buffer of unsigned bytes, but its "
                 "elements lie %zd bytes apart: copy it into a contiguous buffer first",
                 role, view.strides[0]);
  }
  if (view.ndim != 1 || !are_bytes) {
    raise_python(PyExc_ValueError,
                 "the %s must be a contiguous one-dimensional buffer of unsigned bytes, not one of "
                 "%d dimensions and format '%s': isthmus.Buffer accepts any contiguous buffer",
                 role, view.ndim, std::string{format}.c_str());
  }
  endpoint.raw.pointer = view.buf;
  endpoint.nbytes = static_cast<std::size_t>(view.len);
  return endpoint;
}

nb::object copy_to_host(nb::handle self, nb::handle out) {
  auto& memory = as_dpctl(self);
  if (out.is_none()) {
    return to_numpy(memory_of(memory));
  }
  Endpoint destination = to_host_endpoint(out, Access::write, "destination");
  const auto nbytes = static_cast<std::size_t>(memory.nbytes);
  if (destination.nbytes < nbytes) {
    raise_python(PyExc_ValueError, "the destination of %zu bytes is too small for %zu bytes",
                 destination.nbytes, nbytes);
  }
  if (is_forked_child()) {  // a child may read memory that the host can access
    const nb::object contents = to_bytes(memory_of(memory));
    std::memcpy(destination.raw.pointer, PyBytes_AS_STRING(contents.ptr()), nbytes);
    return nb::borrow(out);
  }
  Endpoint source = dpctl_endpoint(memory);
  copy_endpoints(destination, source, nbytes);
  return nb::borrow(out);
}

nb::object copy_from_host(nb::handle self, nb::handle source_object) {
  if (source_object.is_none()) {
    raise_python(PyExc_IndexError, "source must be an object with the buffer protocol, not None");
  }
  Endpoint source = to_host_endpoint(source_object, Access::read, "source");
  if (source.nbytes == 0) {
    raise_python(PyExc_IndexError, "source must not be empty, but has 0 bytes");
  }
  auto& memory = as_dpctl(self);
  if (source.nbytes > static_cast<std::size_t>(memory.nbytes)) {
    raise_python(PyExc_ValueError,
                 "the source of %zu bytes is larger than this memory of %zd bytes", source.nbytes,
                 memory.nbytes);
  }
  Endpoint destination = dpctl_endpoint(memory);
  copy_endpoints(destination, source, source.nbytes);
  return nb::none();
}

nb::object copy_from_device(nb::handle self, nb::handle source) {
  copy_between(memory_of(as_dpctl(self)), memory_in(source));
  return nb::none();
}

// dpctl converts the value to a C unsigned short and uses the lower byte.
nb::object memset_to(nb::handle self, nb::handle value) {
  const auto number = to_c_integer(value, "val", 0, UINT16_MAX);
  static_cast<void>(fill({memory_of(as_dpctl(self)), nb::int_(0), nb::none()},
                         nb::int_(number & 0xff), {nb::handle{}, nb::handle{}, true}));
  return nb::none();
}

nb::object as_bytes(nb::handle self) { return to_bytes(memory_of(as_dpctl(self))); }

nb::object reduce(nb::handle self) {
  static PyObject* const load =
      nb::object(nb::module_::import_("isthmus.compat.dpctl.memory").attr("_to_memory"))
          .release()
          .ptr();
  return nb::make_tuple(nb::handle(load), nb::make_tuple(copy_to_host(self, nb::none()),
                                                         self.attr("get_usm_type")()));
}

// -- methods, as Python calls them ----------------------------------------------------------------

// The one argument of a method, by position or name; not valid if it was not passed.
nb::handle only_argument(const char* expected, PyObject* const* arguments, Py_ssize_t count,
                         PyObject* names) {
  const Py_ssize_t named = names != nullptr ? PyTuple_GET_SIZE(names) : 0;
  if (count + named > 1) {
    raise_python(PyExc_TypeError, "at most one argument, %s, is allowed, not %zd", expected,
                 count + named);
  }
  if (named == 1 && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), expected) != 0) {
    raise_python(PyExc_TypeError, "unexpected keyword argument '%U': the only one is %s",
                 PyTuple_GET_ITEM(names, 0), expected);
  }
  return count + named == 1 ? nb::handle(arguments[0]) : nb::handle{};
}

struct CopyToHostMethod {
  static constexpr const char* k_argument = "obj";
  static nb::object call(nb::handle self, nb::handle argument) {
    return copy_to_host(self, argument.is_valid() ? argument : nb::handle(Py_None));
  }
};
template <nb::object (*Call)(nb::handle, nb::handle)>
struct NeededArgumentMethod {
  static constexpr const char* k_argument = "obj";
  static nb::object call(nb::handle self, nb::handle argument) {
    if (!argument.is_valid()) {
      raise_python(PyExc_TypeError, "missing argument 'obj'");
    }
    return Call(self, argument);
  }
};
struct MemsetMethod {
  static constexpr const char* k_argument = "val";
  static nb::object call(nb::handle self, nb::handle argument) {
    return memset_to(self, argument.is_valid() ? nb::object(nb::borrow(argument)) : nb::int_(0));
  }
};

template <class Method>
PyObject* call_method(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                      PyObject* names) noexcept {
  return result_of([=] {
    return Method::call(self, only_argument(Method::k_argument, arguments, count, names));
  });
}

template <nb::object (*Call)(nb::handle)>
PyObject* call_without_arguments(PyObject* self, PyObject*) noexcept {
  return result_of([self] { return Call(self); });
}

template <class Method>
PyMethodDef method(const char* name, const char* doc) {
  return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&call_method<Method>)),
          METH_FASTCALL | METH_KEYWORDS, doc};
}

// Returns the address and records its export, since the caller may submit work on the memory.
void* exposed_address(nb::handle self) {
  auto& memory = as_dpctl(self);
  expose_address(require_block(memory));
  return memory.pointer;
}

nb::object get_pointer(nb::handle self) {
  return nb::steal(PyLong_FromVoidPtr(exposed_address(self)));
}

// The object to keep alive instead of this one. dpctl's constructors read it for a view of new
// memory, whose owner is not visible to them: the view refers to this object and uses its address.
nb::object get_reference(nb::handle self) {
  auto& memory = as_dpctl(self);
  const bool is_new = as_isthmus(memory)->first_owner != nullptr;
  expose(memory);
  return nb::borrow(is_new ? self : nb::handle(memory.reference));
}

nb::object get_interface(nb::handle self) {
  const auto& memory = as_dpctl(self);
  // False means writable.
  return usm_bytes_interface(exposed_address(self), static_cast<std::size_t>(memory.nbytes), false,
                             memory.queue);
}

// Work on the queue may read and write through a view too: dpctl's copies treat it as host memory.
int get_view(PyObject* self, Py_buffer* view, int flags) noexcept {
  const auto* base = Py_TYPE(self);
  while (base->tp_as_buffer == nullptr || base->tp_as_buffer->bf_getbuffer == &get_view) {
    base = base->tp_base;
  }
  expose(as_dpctl(self));
  return base->tp_as_buffer->bf_getbuffer(self, view, flags);
}

// Deletes the owner after the object, since that may release the interpreter's lock.
void destroy(PyObject* self) noexcept {
  auto* const type = Py_TYPE(self);
  const auto* base = type;
  while (base->tp_dealloc != &destroy) {  // of a Python subclass
    base = base->tp_base;
  }
  while (base->tp_dealloc == &destroy) {
    base = base->tp_base;
  }
  const std::unique_ptr<std::shared_ptr<void>> owner{
      reinterpret_cast<IsthmusMemory*>(self)->first_owner};
  const bool drops_type = (base->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0;
  base->tp_dealloc(self);
  if (!drops_type) {  // as `subtype_dealloc` of CPython: a heap type's function does it itself
    Py_DECREF(type);
  }
}

template <nb::object (*Get)(nb::handle)>
PyObject* get(PyObject* self, void*) noexcept {
  return result_of([self] { return Get(self); });
}

PyMethodDef methods[] = {
    method<CopyToHostMethod>(
        "copy_to_host",
        "copy_to_host(obj=None)\n"
        "--\n\n"
        "Copies the bytes into `obj`, a writable contiguous buffer of one dimension of unsigned\n"
        "bytes, and returns it. Later bytes of `obj` are unchanged. None: into a new uint8\n"
        "ndarray. Blocks, and releases the interpreter's lock. Raises ValueError if `obj` is\n"
        "too small or has another layout, ValueError or BufferError if it is read-only,\n"
        "TypeError if it is not a buffer."),
    method<NeededArgumentMethod<&copy_from_host>>(
        "copy_from_host",
        "copy_from_host(obj)\n"
        "--\n\n"
        "Copies `obj`, a contiguous buffer of one dimension of unsigned bytes, to the start of\n"
        "this memory. Blocks, and releases the interpreter's lock. Raises ValueError if `obj`\n"
        "is longer or has another layout, IndexError if it is empty or None, TypeError if it is\n"
        "not a buffer."),
    method<NeededArgumentMethod<&copy_from_device>>(
        "copy_from_device",
        "copy_from_device(obj)\n"
        "--\n\n"
        "Copies the bytes of an object with __sycl_usm_array_interface__, of any context, to\n"
        "the start of this memory. Blocks, and releases the interpreter's lock. Raises\n"
        "ValueError if `obj` is longer or has no such interface."),
    method<MemsetMethod>(
        "memset",
        "memset(val=0)\n"
        "--\n\n"
        "Sets every byte to the lower byte of `val`, 0..65535 (OverflowError). Blocks,\n"
        "and releases the interpreter's lock."),
    {"tobytes", &call_without_arguments<&as_bytes>, METH_NOARGS,
     "tobytes()\n"
     "--\n\n"
     "A copy of the bytes."},
    {"__bytes__", &call_without_arguments<&as_bytes>, METH_NOARGS, nullptr},
    {"__reduce__", &call_without_arguments<&reduce>, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

PyGetSetDef getters[] = {
    {"_pointer", &get<&get_pointer>, nullptr, "Its address.", nullptr},
    {"reference_obj", &get<&get_reference>, nullptr,
     "The object that owns the memory: this one if it allocated the memory, the one whose memory\n"
     "it adopted, or None.",
     nullptr},
    {"__sycl_usm_array_interface__", &get<&get_interface>, nullptr,
     "Version 1. The flag beside the address is False: the memory may be written.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

constexpr const char* k_doc =
    "(other, *, alignment=0, queue=None, copy=False), like dpctl's class of that name, with\n"
    "pooled memory. `other` a number > 0: that many bytes in the context of `queue` (None:\n"
    "dpctl's default one). `other` an object with __sycl_usm_array_interface__: the same\n"
    "memory, kept alive, if it is of this kind, else ValueError; with copy=True a copy. Raises\n"
    "USMAllocationError if there is no memory, and also, as a ValueError, for an `alignment` >\n"
    "0 that is not a power of two.";

nb::object make_class(const char* name, nb::handle base) {
  const auto* base_buffer = reinterpret_cast<PyTypeObject*>(base.ptr())->tp_as_buffer;
  const bool has_views = base_buffer != nullptr && base_buffer->bf_getbuffer != nullptr;
  PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(&construct)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(&destroy)},
                         {Py_tp_methods, methods},
                         {Py_tp_getset, getters},
                         {Py_tp_doc, const_cast<char*>(k_doc)},
                         {has_views ? Py_bf_getbuffer : 0, reinterpret_cast<void*>(&get_view)},
                         {0, nullptr}};
  PyType_Spec spec{name, sizeof(IsthmusMemory), 0,
                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_IMMUTABLETYPE, slots};
  nb::object type_object =
      steal_or_raise(PyType_FromSpecWithBases(&spec, nb::make_tuple(base).ptr()));
  reinterpret_cast<PyTypeObject*>(type_object.ptr())->tp_vectorcall = &construct_fast;
  return type_object;
}

nb::object make_classes(nb::handle dpctl_module, nb::handle queue, nb::handle allocation_error,
                        nb::handle alignment_error, nb::object prepare) {
  dpctl.memory_base = nb::object(dpctl_module.attr("_Memory")).release();
  dpctl.queue = queue.inc_ref();
  dpctl.allocation_error = allocation_error.inc_ref();
  dpctl.alignment_error = alignment_error.inc_ref();
  set_dpctl_preparer(std::move(prepare));
  hook_functions(dpctl.memory_base);
  dpctl.base_classes[ISTHMUS_KIND_DEVICE] =
      nb::object(dpctl_module.attr("MemoryUSMDevice")).release();
  dpctl.base_classes[ISTHMUS_KIND_SHARED] =
      nb::object(dpctl_module.attr("MemoryUSMShared")).release();
  dpctl.base_classes[ISTHMUS_KIND_HOST] = nb::object(dpctl_module.attr("MemoryUSMHost")).release();
  const auto subclass = [&](const char* name) {
    return make_class(name, dpctl_module.attr(std::strrchr(name, '.') + 1)).release();
  };
  dpctl.classes[ISTHMUS_KIND_DEVICE] = subclass("isthmus.compat.dpctl.memory.MemoryUSMDevice");
  dpctl.classes[ISTHMUS_KIND_SHARED] = subclass("isthmus.compat.dpctl.memory.MemoryUSMShared");
  dpctl.classes[ISTHMUS_KIND_HOST] = subclass("isthmus.compat.dpctl.memory.MemoryUSMHost");
  return nb::make_tuple(dpctl.classes[1], dpctl.classes[2], dpctl.classes[3]);
}

}  // namespace

}  // namespace isthmus::python

NB_MODULE(_dpctl, module) {
  using namespace isthmus::python;
  module.doc() = "The native part of isthmus.compat.dpctl.";
  module.def("make_classes", &make_classes,
             nb::sig("def make_classes(memory_module: Any, queue: Any, allocation_error: type, "
                     "alignment_error: type, prepare: Callable[[Any], tuple[Any, ...]]) -> "
                     "tuple[Any, Any, Any]"),
             "The classes of isthmus.compat.dpctl.memory, for dpctl's memory module and its\n"
             "queue class.");
  module.def("forget_queues", &clear_dpctl_queues, "Drops the cached results of `prepare`.");
  module.def("as_usm_memory", &as_dpctl_memory, nb::arg("obj").none(),
             nb::sig("def as_usm_memory(obj: object) -> Any"),
             "isthmus.compat.dpctl.memory.as_usm_memory.");
}
