// SPDX-License-Identifier: Apache-2.0
// Creation of the memory objects of isthmus.compat.dpctl.

#include "dpctl/make.hpp"

#include <climits>
#include <memory>

#include "core/arguments.hpp"
#include "core/current.hpp"
#include "core/errors.hpp"
#include "core/interned.hpp"
#include "core/owners.hpp"
#include "dpctl/numbers.hpp"
#include "dpctl/queues.hpp"
#include "memory/resources.hpp"
#include "transfer/interfaces.hpp"
#include "transfer/transfers.hpp"

namespace isthmus::python {

namespace {

// Creates an empty object through dpctl's base class, without calling its constructors, which
// allocate.
nb::object make_empty(PyTypeObject* type) {
  static PyObject* const no_arguments = PyTuple_New(0);
  auto* const base = reinterpret_cast<PyTypeObject*>(dpctl.memory_base.ptr());
  nb::object instance = steal_or_raise(base->tp_new(type, no_arguments, nullptr));
  as_dpctl(instance).functions = dpctl.functions;
  return instance;
}

void set_object(PyObject*& member, nb::object value) noexcept {
  Py_XDECREF(std::exchange(member, value.release().ptr()));
}

// Takes ownership of `block`. Nothing after `make_empty` may allocate or run Python code: the hooks
// of the garbage collector would see an incomplete object.
nb::object make_filled(PyTypeObject* type, DpctlBlock block, void* pointer, std::size_t nbytes,
                       nb::object queue, nb::object reference) {
  const bool is_new = block.sycl_queue != nullptr;
  // If this throws, the block is called, which releases its memory.
  auto owner = std::make_unique<std::shared_ptr<void>>(pointer, block);
  nb::object instance = make_empty(type);
  auto& object = as_dpctl(instance);
  (is_new ? as_isthmus(object)->first_owner : object.owner) = owner.release();
  object.pointer = pointer;
  object.nbytes = static_cast<Py_ssize_t>(nbytes);
  set_object(object.queue, std::move(queue));
  set_object(object.reference, std::move(reference));
  return instance;
}

// Throws dpctl's alignment error for an InvalidArgumentError, and its allocation error for other
// exceptions.
[[noreturn]] void raise_as_dpctl(nb::python_error& failed) {
  const nb::handle type = failed.matches(error_type(ISTHMUS_ERROR_INVALID_ARGUMENT))
                              ? dpctl.alignment_error
                              : dpctl.allocation_error;
  nb::object raised = type(nb::str(failed.value()));
  raised.attr("__cause__") = failed.value();
  PyErr_SetObject(type.ptr(), raised.ptr());
  raise_set();
}

BufferHandle allocate(std::size_t nbytes, isthmus_kind_t kind, std::size_t alignment,
                      const DpctlSource& source) try {
  const auto& queue = *nb::inst_ptr<Queue>(source.internal);
  nb::object chosen = current_resource(kind, queue);
  if (!chosen.is_valid()) {
    chosen = source.pool;
  }
  return create_buffer(nbytes, kind, alignment, queue, resource_or_none(chosen),
                       KindsAllowed::requested_only);
} catch (nb::python_error& failed) {
  if (!failed.matches(error_type(ISTHMUS_ERROR_OUT_OF_MEMORY)) &&
      !failed.matches(error_type(ISTHMUS_ERROR_INVALID_ARGUMENT)) &&
      !failed.matches(error_type(ISTHMUS_ERROR_UNSUPPORTED))) {
    throw;
  }
  raise_as_dpctl(failed);
}

void require_queue(nb::handle queue) {
  if (!queue.is_none() && !nb::isinstance(queue, dpctl.queue)) {
    raise_wrong_type(queue, "queue must be a dpctl.SyclQueue or None");
  }
}

nb::object make_new(PyTypeObject* type, isthmus_kind_t kind, std::size_t nbytes,
                    std::size_t alignment, nb::handle queue) {
  const auto source = dpctl_source_for(queue, kind);
  auto memory = allocate(nbytes, kind, alignment, source);
  auto sycl_queue =
      QueueHandle::share(nb::inst_ptr<isthmus::python::Queue>(source.queue)->raw.get());
  auto* const pointer = isthmus_buffer_pointer(memory.get());
  return make_filled(type, {memory.detach(), sycl_queue.detach()}, pointer, nbytes,
                     source.sycl_queue, nb::none());
}

std::size_t alignment_in(nb::handle argument) {
  const auto alignment = argument.is_valid() ? to_ssize(argument, "alignment") : 0;
  return alignment < 0 ? 0 : static_cast<std::size_t>(alignment);
}

bool is_copy_requested(const MemoryArguments& arguments) {
  return arguments.copy.is_valid() && to_c_integer(arguments.copy, "copy", INT_MIN, INT_MAX) != 0;
}

// A view of the same memory, of the class `type`. It has an owner that dpctl's constructors copy,
// so the address counts as exported. The memory has a block.
nb::object make_view(PyTypeObject* type, DpctlMemory& memory) {
  auto owner = std::make_unique<std::shared_ptr<void>>(*owner_of(memory));
  expose_address(*dpctl_block_of(memory));
  nb::object instance = make_empty(type);
  auto& view = as_dpctl(instance);
  view.owner = owner.release();
  view.pointer = memory.pointer;
  view.nbytes = memory.nbytes;
  set_object(view.queue, nb::borrow(memory.queue));
  set_object(view.reference, nb::borrow(memory.reference));
  return instance;
}

// The kind of memory that dpctl owns, as its object stores it; UNKNOWN for other memory.
isthmus_kind_t foreign_kind_of(nb::handle object) {
  if (!is_dpctl_memory(object) || as_dpctl(object).owner == nullptr ||
      dpctl_block_of(as_dpctl(object)) != nullptr) {
    return ISTHMUS_KIND_UNKNOWN;
  }
  for (const auto kind : {ISTHMUS_KIND_DEVICE, ISTHMUS_KIND_SHARED, ISTHMUS_KIND_HOST}) {
    if (nb::isinstance(object, dpctl.base_classes[kind])) {
      return kind;
    }
  }
  return ISTHMUS_KIND_UNKNOWN;
}

nb::object make_from_foreign(PyTypeObject* type, const DpctlMemory& foreign) {
  return make_filled(type, {nullptr, nullptr, nullptr, *foreign.owner}, foreign.pointer,
                     static_cast<std::size_t>(foreign.nbytes), nb::borrow(foreign.queue),
                     nb::borrow(foreign.reference));
}

nb::object make_adopted(PyTypeObject* type, const nb::object& memory, nb::object reference) {
  const auto& buffer = *buffer_of(memory);
  nb::object queue = dpctl_queue_of(buffer.queue_object);
  auto raw = BufferHandle::share(buffer.raw.get());
  auto* const pointer = isthmus_buffer_pointer(raw.get());
  return make_filled(type, {raw.detach(), nullptr}, pointer, buffer.nbytes, std::move(queue),
                     std::move(reference));
}

[[noreturn]] void raise_wrong_kind(isthmus_kind_t actual, isthmus_kind_t requested) {
  raise_python(PyExc_ValueError,
               "the memory is of kind '%U', not '%U': pass copy=True to copy it into new memory of "
               "that kind, or use MemoryUSM%s, which accepts it without a copy",
               kind_name(actual).ptr(), kind_name(requested).ptr(),
               actual == ISTHMUS_KIND_DEVICE   ? "Device"
               : actual == ISTHMUS_KIND_SHARED ? "Shared"
                                               : "Host");
}

nb::object make_from_object(PyTypeObject* type, isthmus_kind_t kind, const nb::object& source,
                            const MemoryArguments& arguments, bool may_copy) {
  const auto& buffer = *buffer_of(source);
  if (buffer.kind != kind) {
    if (!may_copy) {
      raise_wrong_kind(buffer.kind, kind);
    }
    nb::object instance = make_new(type, kind, buffer.nbytes, 0, arguments.queue);
    copy_between(memory_of(as_dpctl(instance)), source);
    return instance;
  }
  if (is_dpctl_memory(arguments.other)) {
    auto& foreign = as_dpctl(arguments.other);
    return dpctl_block_of(foreign) != nullptr
               ? make_view(type, foreign)
               : make_adopted(type, source, nb::borrow(foreign.reference));
  }
  return make_adopted(type, source, nb::borrow(arguments.other));
}

isthmus_kind_t kind_of_class(PyTypeObject* type) {
  for (const auto kind : {ISTHMUS_KIND_DEVICE, ISTHMUS_KIND_SHARED, ISTHMUS_KIND_HOST}) {
    if (PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(dpctl.classes[kind].ptr())) != 0) {
      return kind;
    }
  }
  raise_python(PyExc_TypeError, "%.100s is not a class of USM memory", type->tp_name);
}

}  // namespace

void copy_between(const nb::object& target, const nb::object& source) {
  static_cast<void>(copy({target, source, nb::none(), nb::int_(0), nb::int_(0)},
                         {nb::handle{}, nb::handle{}, true}));
}

nb::object memory_in(nb::handle object) {
  if (is_dpctl_memory(object) && dpctl_block_of(as_dpctl(object)) != nullptr) {
    return memory_of(as_dpctl(object));
  }
  auto interface = read_interface(object, Access::write);
  if (!interface) {
    raise_python(PyExc_ValueError,
                 "%.100s is not a size or a memory object and has no __sycl_usm_array_interface__",
                 Py_TYPE(object.ptr())->tp_name);
  }
  if (is_dpctl_memory(object)) {
    interface->memory.read_only = false;  // in dpctl's interface the flag True means writable
  }
  return adopt_interface(object, *std::move(interface));
}

nb::object make_dpctl(PyTypeObject* type, const MemoryArguments& arguments) {
  drain_deferred();
  const auto kind = kind_of_class(type);
  const auto alignment = alignment_in(arguments.alignment);
  require_queue(arguments.queue);
  const bool may_copy = is_copy_requested(arguments);  // checked even if no copy is needed
  if (is_integral(arguments.other)) {
    return make_new(type, kind, to_positive_size(arguments.other), alignment, arguments.queue);
  }
  if (foreign_kind_of(arguments.other) == kind) {
    return make_from_foreign(type, as_dpctl(arguments.other));
  }
  return make_from_object(type, kind, memory_in(arguments.other), arguments, may_copy);
}

nb::object as_dpctl_memory(nb::handle object) {
  if (const auto kind = foreign_kind_of(object); kind != ISTHMUS_KIND_UNKNOWN) {
    auto* const type = reinterpret_cast<PyTypeObject*>(dpctl.classes[kind].ptr());
    return make_from_foreign(type, as_dpctl(object));
  }
  const nb::object source = memory_in(object);
  const auto kind = buffer_of(source)->kind;
  MemoryArguments arguments;
  arguments.other = object;
  return make_from_object(reinterpret_cast<PyTypeObject*>(dpctl.classes[kind].ptr()), kind, source,
                          arguments, false);
}

}  // namespace isthmus::python
