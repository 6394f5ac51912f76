// SPDX-License-Identifier: Apache-2.0
// The three classes of isthmus.compat.dpctl.memory: subclasses of dpctl's, created when that is
// imported, whose memory and copies are Isthmus'.

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include "arguments.hpp"
#include "dpctl_make.hpp"
#include "dpctl_numbers.hpp"
#include "dpctl_queues.hpp"
#include "errors.hpp"
#include "gil.hpp"

namespace isthmus::python {
namespace {

// -- what is asked for by C -----------------------------------------------------------------------

DpctlGetter their_get_data_ptr, their_get_opaque_ptr;

template <DpctlGetter* Theirs>
void* get_and_tell(DpctlMemory* self) noexcept {
  if (auto* block = dpctl_block_of(*self); block != nullptr) {
    tell_address(*block);
  }
  return (*Theirs)(self);
}

// dpctl's own classes share the memory with a view of theirs, whose table reports no use.
newfunc their_new[4];

template <isthmus_kind_t Kind>
PyObject* tell_and_make(PyTypeObject* type, PyObject* arguments, PyObject* named) noexcept {
  PyObject* const of = PyTuple_GET_SIZE(arguments) != 0 ? PyTuple_GET_ITEM(arguments, 0)
                       : named != nullptr               ? PyDict_GetItemString(named, "other")
                                                        : nullptr;
  if (of != nullptr &&
      PyObject_TypeCheck(of, reinterpret_cast<PyTypeObject*>(dpctl.their_base.ptr())) != 0) {
    if (auto* block = dpctl_block_of(as_dpctl(of)); block != nullptr) {
      tell_address(*block);
    }
  }
  return their_new[Kind](type, arguments, named);
}

template <isthmus_kind_t Kind>
void watch_views(nb::handle theirs) {
  auto* const type = reinterpret_cast<PyTypeObject*>(theirs.ptr());
  their_new[Kind] = std::exchange(type->tp_new, &tell_and_make<Kind>);
}

void take_functions(nb::handle base) {
  const nb::object table = base.attr("__dict__")["__pyx_vtable__"];
  auto* const theirs = static_cast<void**>(PyCapsule_GetPointer(table.ptr(), nullptr));
  if (theirs == nullptr) {
    raise_set();
  }
  their_get_data_ptr = reinterpret_cast<DpctlGetter>(theirs[k_get_data_ptr]);
  their_get_opaque_ptr = reinterpret_cast<DpctlGetter>(theirs[k_get_opaque_ptr]);
  static void* ours[k_function_count];
  std::copy_n(theirs, k_function_count, ours);
  ours[k_get_data_ptr] = reinterpret_cast<void*>(&get_and_tell<&their_get_data_ptr>);
  ours[k_get_opaque_ptr] = reinterpret_cast<void*>(&get_and_tell<&their_get_opaque_ptr>);
  dpctl.functions = ours;
}

// -- construction ---------------------------------------------------------------------------------

PyObject* construct(PyTypeObject* type, PyObject* arguments, PyObject* named) noexcept {
  return result_of([=] { return make_dpctl(type, read_memory_arguments(arguments, named)); });
}

// Without a tuple and a dictionary. For the classes themselves, not for Python subclasses.
PyObject* construct_fast(PyObject* type, PyObject* const* arguments, std::size_t count,
                         PyObject* names) noexcept {
  return result_of([=] {
    return make_dpctl(reinterpret_cast<PyTypeObject*>(type),
                      read_memory_arguments(arguments, count, names));
  });
}

// -- copies, by dpctl's rules ---------------------------------------------------------------------

// A contiguous, one-dimensional buffer of unsigned bytes.
Place to_host_place(nb::handle object, Access wanted, const char* role) {
  Place made;
  made.memory = std::make_unique<Pinned>();
  auto& view = made.memory->view;
  const int flags = PyBUF_STRIDES | PyBUF_FORMAT | (wanted == Access::write ? PyBUF_WRITABLE : 0);
  if (PyObject_GetBuffer(object.ptr(), &view, flags) != 0) {
    raise_set();
  }
  std::string_view format = view.format != nullptr ? view.format : "B";
  format.remove_prefix(std::min(format.find_first_not_of("@=<>!"), format.size()));
  const bool are_bytes = format == "B" || format == "c" || format == "?";
  if (view.ndim != 1 || !are_bytes ||
      (view.len > 1 && view.strides != nullptr && view.strides[0] != 1)) {
    raise_python(PyExc_ValueError,
                 "the %s must be a contiguous one-dimensional buffer of unsigned bytes, not one of "
                 "%d dimensions and format '%s': isthmus.Buffer accepts any contiguous buffer",
                 role, view.ndim, std::string{format}.c_str());
  }
  made.raw.pointer = view.buf;
  made.nbytes = static_cast<std::size_t>(view.len);
  return made;
}

nb::object copy_to_host(nb::handle self, nb::handle out) {
  const auto& of = as_dpctl(self);
  if (out.is_none()) {
    return to_numpy(memory_of(of));
  }
  Place to = to_host_place(out, Access::write, "destination");
  const auto nbytes = static_cast<std::size_t>(of.nbytes);
  if (to.nbytes < nbytes) {
    raise_python(PyExc_ValueError, "the destination of %zu bytes is too small for %zu bytes",
                 to.nbytes, nbytes);
  }
  if (is_forked_child()) {  // may read what the host can access
    const nb::object contents = to_bytes(memory_of(of));
    std::memcpy(to.raw.pointer, PyBytes_AS_STRING(contents.ptr()), nbytes);
    return nb::borrow(out);
  }
  Place from = dpctl_place(of);
  copy_places(to, from, nbytes);
  return nb::borrow(out);
}

nb::object copy_from_host(nb::handle self, nb::handle given) {
  if (given.is_none()) {
    raise_python(PyExc_IndexError, "there is nothing to copy from None");
  }
  Place from = to_host_place(given, Access::read, "source");
  if (from.nbytes == 0) {
    raise_python(PyExc_IndexError, "there is nothing to copy from 0 bytes");
  }
  const auto& of = as_dpctl(self);
  if (from.nbytes > static_cast<std::size_t>(of.nbytes)) {
    raise_python(PyExc_ValueError,
                 "the source of %zu bytes is larger than this memory of %zd bytes", from.nbytes,
                 of.nbytes);
  }
  Place to = dpctl_place(of);
  copy_places(to, from, from.nbytes);
  return nb::none();
}

nb::object copy_from_device(nb::handle self, nb::handle source) {
  copy_between(memory_of(as_dpctl(self)), memory_in(source));
  return nb::none();
}

// dpctl takes it as a C unsigned short, of which it uses the lower byte.
nb::object memset_to(nb::handle self, nb::handle value) {
  const auto told = to_c_integer(value, "val", 0, UINT16_MAX);
  static_cast<void>(fill({memory_of(as_dpctl(self)), nb::int_(0), nb::none()},
                         nb::int_(told & 0xff), {nb::handle{}, nb::handle{}, true}));
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

// The one argument of a method, by position or name; not valid if it was not given.
nb::handle only_argument(const char* known, PyObject* const* arguments, Py_ssize_t count,
                         PyObject* names) {
  const Py_ssize_t named = names != nullptr ? PyTuple_GET_SIZE(names) : 0;
  if (count + named > 1) {
    raise_python(PyExc_TypeError, "takes one argument, %s, not %zd", known, count + named);
  }
  if (named == 1 && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), known) != 0) {
    raise_python(PyExc_TypeError, "got an unexpected keyword argument '%U': the only one is %s",
                 PyTuple_GET_ITEM(names, 0), known);
  }
  return count + named == 1 ? nb::handle(arguments[0]) : nb::handle{};
}

struct CopyToHostMethod {
  static constexpr const char* k_argument = "obj";
  static nb::object call(nb::handle self, nb::handle given) {
    return copy_to_host(self, given.is_valid() ? given : nb::handle(Py_None));
  }
};
template <nb::object (*Call)(nb::handle, nb::handle)>
struct NeededArgumentMethod {
  static constexpr const char* k_argument = "obj";
  static nb::object call(nb::handle self, nb::handle given) {
    if (!given.is_valid()) {
      raise_python(PyExc_TypeError, "is missing its argument, obj");
    }
    return Call(self, given);
  }
};
struct MemsetMethod {
  static constexpr const char* k_argument = "val";
  static nb::object call(nb::handle self, nb::handle given) {
    return memset_to(self, given.is_valid() ? nb::object(nb::borrow(given)) : nb::int_(0));
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
PyObject* call_alone(PyObject* self, PyObject*) noexcept {
  return result_of([self] { return Call(self); });
}

template <class Method>
PyMethodDef method(const char* name, const char* doc) {
  return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&call_method<Method>)),
          METH_FASTCALL | METH_KEYWORDS, doc};
}

// The caller may submit work on it.
void* address_told(nb::handle self) {
  auto& of = as_dpctl(self);
  tell_address(require_block(of));
  return of.pointer;
}

nb::object get_pointer(nb::handle self) {
  return nb::steal(PyLong_FromVoidPtr(address_told(self)));
}

// The entries that are the same for all objects, to be copied. The three other ones exist too, so
// that the dictionary has space for them.
PyObject* interface_template() {
  nb::dict made;
  made[interned.data] = nb::none();  // the address, and False: it may be written
  made[interned.shape] = nb::none();
  made["strides"] = nb::none();
  made["typestr"] = "|u1";
  made["version"] = 1;
  made[interned.syclobj] = nb::none();
  return made.release().ptr();
}

nb::object get_interface(nb::handle self) {
  static PyObject* const same = interface_template();
  const auto& of = as_dpctl(self);
  nb::object made = nb::steal(PyDict_Copy(same));
  const nb::object data = nb::steal(PyTuple_Pack(2, get_pointer(self).ptr(), Py_False));
  const nb::object shape =
      nb::steal(PyTuple_Pack(1, nb::steal(PyLong_FromSsize_t(of.nbytes)).ptr()));
  if (!made.is_valid() || !data.is_valid() || !shape.is_valid() ||
      PyDict_SetItem(made.ptr(), interned.data, data.ptr()) != 0 ||
      PyDict_SetItem(made.ptr(), interned.shape, shape.ptr()) != 0 ||
      PyDict_SetItem(made.ptr(), interned.syclobj, of.queue) != 0) {
    raise_set();
  }
  return made;
}

// Work on the queue may read and write through a view too: dpctl's copies treat it as host memory.
int get_view(PyObject* self, Py_buffer* view, int flags) noexcept {
  const auto* base = Py_TYPE(self);
  while (base->tp_as_buffer == nullptr || base->tp_as_buffer->bf_getbuffer == &get_view) {
    base = base->tp_base;
  }
  if (auto* block = dpctl_block_of(as_dpctl(self)); block != nullptr) {
    tell_address(*block);
  }
  return base->tp_as_buffer->bf_getbuffer(self, view, flags);
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
        "bytes, and returns it. Bytes of `obj` past that are unchanged. None: into a new uint8\n"
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
    {"tobytes", &call_alone<&as_bytes>, METH_NOARGS,
     "tobytes()\n"
     "--\n\n"
     "A copy of the bytes."},
    {"__bytes__", &call_alone<&as_bytes>, METH_NOARGS, nullptr},
    {"__reduce__", &call_alone<&reduce>, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

PyGetSetDef getters[] = {
    {"_pointer", &get<&get_pointer>, nullptr, "Its address.", nullptr},
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
  const auto* theirs = reinterpret_cast<PyTypeObject*>(base.ptr())->tp_as_buffer;
  const bool has_views = theirs != nullptr && theirs->bf_getbuffer != nullptr;
  PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(&construct)},
                         {Py_tp_methods, methods},
                         {Py_tp_getset, getters},
                         {Py_tp_doc, const_cast<char*>(k_doc)},
                         {has_views ? Py_bf_getbuffer : 0, reinterpret_cast<void*>(&get_view)},
                         {0, nullptr}};
  PyType_Spec spec{name, 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_IMMUTABLETYPE,
                   slots};
  nb::object made = nb::steal(PyType_FromSpecWithBases(&spec, nb::make_tuple(base).ptr()));
  if (!made.is_valid()) {
    raise_set();
  }
  reinterpret_cast<PyTypeObject*>(made.ptr())->tp_vectorcall = &construct_fast;
  return made;
}

nb::object make_classes(nb::handle theirs, nb::handle queue, nb::handle allocation_error,
                        nb::handle alignment_error, nb::object prepare) {
  dpctl.their_base = nb::object(theirs.attr("_Memory")).release();
  dpctl.queue = queue.inc_ref();
  dpctl.allocation_error = allocation_error.inc_ref();
  dpctl.alignment_error = alignment_error.inc_ref();
  set_dpctl_preparer(std::move(prepare));
  take_functions(dpctl.their_base);
  dpctl.theirs[ISTHMUS_KIND_DEVICE] = nb::object(theirs.attr("MemoryUSMDevice")).release();
  dpctl.theirs[ISTHMUS_KIND_SHARED] = nb::object(theirs.attr("MemoryUSMShared")).release();
  dpctl.theirs[ISTHMUS_KIND_HOST] = nb::object(theirs.attr("MemoryUSMHost")).release();
  watch_views<ISTHMUS_KIND_DEVICE>(dpctl.theirs[ISTHMUS_KIND_DEVICE]);
  watch_views<ISTHMUS_KIND_SHARED>(dpctl.theirs[ISTHMUS_KIND_SHARED]);
  watch_views<ISTHMUS_KIND_HOST>(dpctl.theirs[ISTHMUS_KIND_HOST]);
  const auto subclass = [&](const char* name) {
    return make_class(name, theirs.attr(std::strrchr(name, '.') + 1)).release();
  };
  dpctl.classes[ISTHMUS_KIND_DEVICE] = subclass("isthmus.compat.dpctl.memory.MemoryUSMDevice");
  dpctl.classes[ISTHMUS_KIND_SHARED] = subclass("isthmus.compat.dpctl.memory.MemoryUSMShared");
  dpctl.classes[ISTHMUS_KIND_HOST] = subclass("isthmus.compat.dpctl.memory.MemoryUSMHost");
  return nb::make_tuple(dpctl.classes[1], dpctl.classes[2], dpctl.classes[3]);
}

}  // namespace

void bind_dpctl(nb::module_& module) {
  module.def("_make_dpctl_classes", &make_classes,
             nb::sig("def _make_dpctl_classes(theirs: Any, queue: Any, allocation_error: type, "
                     "alignment_error: type, prepare: Callable[[Any], tuple[Any, ...]]) -> "
                     "tuple[Any, Any, Any]"),
             "The classes of isthmus.compat.dpctl.memory, for dpctl's memory module and its\n"
             "queue class.");
  module.def("_forget_dpctl_queues", &forget_dpctl_queues,
             "For isthmus.compat.dpctl.memory: what it prepared is requested again.");
  module.def("_as_dpctl_memory", &as_dpctl_memory, nb::arg("obj").none(),
             nb::sig("def _as_dpctl_memory(obj: object) -> Any"),
             "isthmus.compat.dpctl.memory.as_usm_memory.");
}

}  // namespace isthmus::python
