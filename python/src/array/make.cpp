// SPDX-License-Identifier: Apache-2.0
// isthmus.empty, zeros, ones, full, their _like variants, and arrays over memory of other
// libraries.

#include <algorithm>
#include <bit>

#include "array/array.hpp"
#include "array/bindings.hpp"
#include "array/prototype.hpp"
#include "array/requests.hpp"
#include "array/sides.hpp"
#include "core/arguments.hpp"
#include "core/current.hpp"
#include "core/errors.hpp"
#include "core/interned.hpp"
#include "interop/dlpack.hpp"
#include "layout/dlpack_tensor.hpp"
#include "layout/order.hpp"
#include "memory/resources.hpp"
#include "memory/sizes.hpp"
#include "transfer/interfaces.hpp"
#include "transfer/read_only.hpp"

namespace isthmus::python {

namespace {

const ElementType& type_for(const ArrayRequest& request, const Model& like) {
  return has_value(request.dtype) ? to_element_type(request.dtype)
         : like.type != nullptr   ? *like.type
                                  : default_element_type();
}

SharedLayout layout_for(const ArrayRequest& request, const Model& like, const ElementType& type) {
  const auto order = to_order(request.order, request.prototype.is_valid());
  if (const auto* prototype_layout = has_value(request.shape) ? nullptr : like.layout()) {
    const bool is_c =
        order == RequestedOrder::c || (order != RequestedOrder::fortran &&
                                       prototype_layout->is_contiguous(prototype_layout->item));
    return is_c ? recent_layout(ArrayNumbers{prototype_layout->shape}, type)
                : ordered_layout(*prototype_layout, type, order);
  }
  const bool has_shape = has_value(request.shape) || !like.shape.is_valid();
  const nb::handle shape = has_shape ? request.shape : nb::handle{like.shape};
  auto extents = to_extents(shape);
  return order == RequestedOrder::fortran ? fortran_layout(std::move(extents), type)
                                          : recent_layout(std::move(extents), type);
}

nb::object queue_for(const ArrayRequest& request, const Model& like, const Resource* resource) {
  if (has_value(request.queue) || has_value(request.device)) {
    return to_queue(request.queue, request.device);
  }
  return resource != nullptr     ? resource->queue_object
         : like.queue.is_valid() ? like.queue
                                 : current_queue();
}

// The requested alignment, or that of the elements if it is larger.
std::size_t alignment_for(const ArrayRequest& request, const ElementType& type) {
  const auto alignment = to_alignment(request.alignment);
  return std::has_single_bit(alignment) ? std::max<std::size_t>(alignment, type.alignment)
                                        : alignment;
}

// A resource that falls back to another kind of memory.
nb::object with_fallback(const ArrayRequest& request, isthmus_kind_t kind,
                         const nb::object& queue) {
  const auto first = has_value(request.resource) ? nb::borrow(request.resource) : nb::none();
  return nb::module_::import_("isthmus._fallback")
      .attr("with_fallback")(kind_name(kind), request.fallback, queue, first);
}

nb::object make_empty(const ArrayRequest& request, const Model& like, const ElementType& type) {
  const auto* resource = resource_or_none(request.resource);
  const auto kind = has_value(request.kind) ? to_kind(request.kind)
                    : resource != nullptr   ? resource->kind
                                            : like.kind;
  nb::object queue = queue_for(request, like, resource);
  auto layout = size_to_allocate(kind, nb::inst_ptr<python::Queue>(queue)->device_object,
                                 [&] { return layout_for(request, like, type); });
  nb::object chain;  // keeps the resource alive until the memory does
  if (has_value(request.fallback)) {
    chain = with_fallback(request, kind, queue);
    resource = resource_or_none(chain);
  }
  const auto alignment = alignment_for(request, type);
  return make_fresh_array(std::move(layout), kind, std::move(queue), alignment, resource);
}

// Created once, because it is large.
const Model& no_model() {
  static const auto& none = *new Model{};
  return none;
}

// Calls `make` with the model of the request's prototype, or with an empty model.
template <class Make>
nb::object with_model(const ArrayRequest& request, Make make) {
  return request.prototype.is_valid() ? make(model_of(request.prototype)) : make(no_model());
}

// The fast path of the most common call: a shape and a type alone.
nb::object make_default_array(nb::handle shape, const ElementType& type) {
  constexpr auto k_kind = ISTHMUS_KIND_DEVICE;
  nb::object queue = current_queue();
  auto layout = size_to_allocate(k_kind, nb::inst_ptr<python::Queue>(queue)->device_object,
                                 [&] { return recent_layout(to_extents(shape), type); });
  return make_fresh_array(std::move(layout), k_kind, std::move(queue));
}

nb::object make_empty(const ArrayRequest& request) {
  if (!request.has_keywords && !request.prototype.is_valid()) {
    return make_default_array(request.shape, has_value(request.dtype)
                                                 ? to_element_type(request.dtype)
                                                 : default_element_type());
  }
  return with_model(request, [&](const Model& like) {
    return make_empty(request, like, type_for(request, like));
  });
}

// Submits the fill. All uses of the array are ordered after it.
nb::object fill(nb::object array, nb::handle value) {
  static_cast<void>(fill_array(array, value, {nb::handle{}, nb::handle{}, false}));
  return array;
}

template <int Value>
nb::object make_filled(const ArrayRequest& request) {
  return fill(make_empty(request), nb::int_(Value));
}

// The type that NumPy chooses for the value.
const ElementType& type_of_value(nb::handle value) {
  auto* const exact = Py_TYPE(value.ptr());
  if (exact == &PyFloat_Type || exact == &PyComplex_Type || exact == &PyBool_Type) {
    return to_element_type(reinterpret_cast<PyObject*>(exact));
  }
  int overflow = exact == &PyLong_Type ? 0 : 1;
  if (overflow == 0) {
    static_cast<void>(PyLong_AsLongLongAndOverflow(value.ptr(), &overflow));
  }
  if (overflow == 0) {
    return to_element_type(reinterpret_cast<PyObject*>(&PyLong_Type));
  }
  if (const auto* type = element_type_of(value, "fill_value")) {
    return *type;
  }
  const nb::object like = numpy_array_of(value);
  if (PyLong_Check(value.ptr()) == 0 && like.attr("dtype").attr("kind").equal(nb::str("O"))) {
    raise_python(PyExc_TypeError,
                 "fill_value must be a Python or NumPy number, not %.100s: pass float(value)",
                 exact->tp_name);
  }
  return to_element_type(nb::object(like.attr("dtype")));
}

nb::object make_full(const ArrayRequest& request) {
  return with_model(request, [&](const Model& like) {
    const bool has_type = has_value(request.dtype) || like.type != nullptr;
    const auto& type = has_type ? type_for(request, like) : type_of_value(request.fill_value);
    return fill(make_empty(request, like, type), request.fill_value);
  });
}

// -- the functions themselves ---------------------------------------------------------------------

constexpr RequestMember k_shape[] = {&ArrayRequest::shape, &ArrayRequest::dtype};
constexpr RequestMember k_full[] = {&ArrayRequest::shape, &ArrayRequest::fill_value,
                                    &ArrayRequest::dtype};
constexpr RequestMember k_like[] = {&ArrayRequest::prototype, &ArrayRequest::dtype};
constexpr RequestMember k_full_like[] = {&ArrayRequest::prototype, &ArrayRequest::fill_value,
                                         &ArrayRequest::dtype};

constexpr ArraySignature k_empty{"empty", k_shape, 1, false, false};
constexpr ArraySignature k_zeros{"zeros", k_shape, 1, false, false};
constexpr ArraySignature k_ones{"ones", k_shape, 1, false, false};
constexpr ArraySignature k_full_of{"full", k_full, 2, true, false};
constexpr ArraySignature k_empty_like{"empty_like", k_like, 1, false, true};
constexpr ArraySignature k_zeros_like{"zeros_like", k_like, 1, false, true};
constexpr ArraySignature k_ones_like{"ones_like", k_like, 1, false, true};
constexpr ArraySignature k_full_of_like{"full_like", k_full_like, 2, true, true};

template <const ArraySignature& Signature, nb::object (*Make)(const ArrayRequest&)>
PyObject* call(PyObject*, PyObject* const* arguments, Py_ssize_t positional,
               PyObject* names) noexcept {
  return result_of([=] {
    return Make(read_request(Signature, arguments, static_cast<std::size_t>(positional), names));
  });
}

template <const ArraySignature& Signature, nb::object (*Make)(const ArrayRequest&)>
PyMethodDef method(const char* doc) {
  return {Signature.name,
          reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&call<Signature, Make>)),
          METH_FASTCALL | METH_KEYWORDS, doc};
}

#define ISTHMUS_WHERE                                                             \
  "order='C', kind=None, device=None, queue=None, resource=None, fallback=None, " \
  "alignment=0, usm_type=None, sycl_queue=None)\n--\n\n"
#define ISTHMUS_WHERE_LIKE                                                     \
  "shape=None, order='K', kind=None, device=None, queue=None, resource=None, " \
  "fallback=None, alignment=0, usm_type=None, sycl_queue=None)\n--\n\n"

PyMethodDef functions[] = {
    method<k_empty, &make_empty>(
        "empty($module, /, shape, dtype='float32', *, " ISTHMUS_WHERE
        "Creates an array in C order. The elements have no defined values at first.\n\n"
        "`shape`: an integer or a sequence of integers. `dtype`: as for DType. `order`: \"C\", or\n"
        "\"F\" for Fortran order. `kind`: \"device\", \"shared\" or \"host\"; None: that of\n"
        "`resource`, else \"device\". `device` or `queue`: the location of the memory; neither:\n"
        "the current queue. `resource`: the resource to allocate from; None: the current one\n"
        "(isthmus.using), else default_pool(kind), so that arrays created in a loop cause no\n"
        "driver calls. `fallback`, \"shared\" or \"host\": the kind to use when there is no\n"
        "memory left; the array's `kind` is then that of its memory. `alignment`: bytes, a power\n"
        "of two; 0: the device's default. `usm_type` and `sycl_queue` are aliases of `kind` and\n"
        "`queue`.\n\n"
        "Raises TypeError for a type that arrays do not support and for two names of one\n"
        "argument, ValueError for negative extents, more than 64 of them, a bad kind or\n"
        "alignment, USMAllocationError if there is no memory, also for any size past 63 bits,\n"
        "UnsupportedError for a kind that the device does not have. Safe to use from any\n"
        "thread."),
    method<k_zeros, &make_filled<0>>(
        "zeros($module, /, shape, dtype='float32', *, " ISTHMUS_WHERE
        "Creates an array of zeros. Arguments and errors are those of empty(). Does not wait\n"
        "for the fill: uses of the array are ordered after it."),
    method<k_ones, &make_filled<1>>("ones($module, /, shape, dtype='float32', *, " ISTHMUS_WHERE
                                    "Creates an array of ones, like zeros()."),
    method<k_full_of, &make_full>(
        "full($module, /, shape, fill_value, dtype=None, *, " ISTHMUS_WHERE
        "Creates an array filled with a number, like zeros(). `dtype` None: the type that NumPy\n"
        "chooses for the value. Raises OverflowError for an integer that does not fit, TypeError\n"
        "for a value of another kind, for example 1.5 for integers."),
    method<k_empty_like, &make_empty>(
        "empty_like($module, /, prototype, dtype=None, *, " ISTHMUS_WHERE_LIKE
        "Creates an array like empty(), with the shape, dtype, kind and queue of `prototype`\n"
        "except for those that are passed. `prototype`: an Array, a Buffer, an array of dpnp,\n"
        "dpctl or CuPy, or a NumPy array or another object with shape and dtype, for which kind\n"
        "and queue are the defaults. `order`: \"C\", \"F\", \"A\" (Fortran order if the prototype\n"
        "is in that order), or \"K\", the order of its dimensions in memory."),
    method<k_zeros_like, &make_filled<0>>(
        "zeros_like($module, /, prototype, dtype=None, *, " ISTHMUS_WHERE_LIKE
        "Like empty_like(), filled with zeros."),
    method<k_ones_like, &make_filled<1>>(
        "ones_like($module, /, prototype, dtype=None, *, " ISTHMUS_WHERE_LIKE
        "Like empty_like(), filled with ones."),
    method<k_full_of_like, &make_full>(
        "full_like($module, /, prototype, fill_value, dtype=None, *, " ISTHMUS_WHERE_LIKE
        "Like empty_like() and full(). `dtype` None: that of the prototype."),
    {nullptr, nullptr, 0, nullptr}};

// -- other libraries' memory ----------------------------------------------------------------------

// An array without elements adopts nothing: drivers have no address for it.
nb::object without_elements(ArrayInterface interface) {
  const auto kind =
      interface.memory.kind == ISTHMUS_KIND_UNKNOWN ? ISTHMUS_KIND_DEVICE : interface.memory.kind;
  return make_fresh_array(share_layout(std::move(interface.layout)), kind,
                          std::move(interface.queue));
}

// Widens the adoption to all of the memory object that the array is a part of, if it exposes that:
// arrays over other parts then share the memory. Returns the offset of the part.
std::size_t widen(Adoption& adoption, nb::handle parent) {
  auto* const base = static_cast<char*>(to_pointer(parent.attr("_pointer"), "_pointer"));
  const auto nbytes = to_size(nb::object(parent.attr("nbytes")), "nbytes");
  const auto begin =
      reinterpret_cast<std::uintptr_t>(adoption.pointer) - reinterpret_cast<std::uintptr_t>(base);
  if (begin > nbytes || adoption.nbytes > nbytes - begin) {
    return 0;
  }
  adoption.pointer = base;
  adoption.nbytes = nbytes;
  return begin;
}

// None if the object does not have the interface.
nb::object array_from_interface(nb::handle object, nb::handle parent) {
  auto interface = read_interface(object, Access::write);
  if (!interface) {
    return nb::none();
  }
  require_type(*interface);
  if (interface->empty) {
    return without_elements(*std::move(interface));
  }
  auto layout = share_layout(interface->layout);
  require_element_multiples(static_cast<const char*>(interface->memory.pointer) + layout->before,
                            *layout, "interface");
  const auto begin = parent.is_none() ? 0 : widen(interface->memory, parent);
  return make_typed_array(adopt_interface(object, *std::move(interface)), std::move(layout),
                          begin + layout->before);
}

}  // namespace

void bind_array_make(nb::module_& module) {
  if (PyModule_AddFunctions(module.ptr(), functions) != 0) {
    raise_set();
  }
  module.def(
      "_array_from_interface", &array_from_interface, nb::arg("obj").none(),
      nb::arg("whole") = nb::none(),
      nb::sig("def _array_from_interface(obj: object, whole: object = None) -> Array | None"),
      "An array over the memory that __sycl_usm_array_interface__ or __cuda_array_interface__\n"
      "describes, as a part of the memory object `whole` unless that is None.");
  module.def("_array_from_dlpack", &array_from_dlpack, nb::arg("obj").none(),
             nb::arg("queue") = nb::none(),
             nb::sig("def _array_from_dlpack(obj: object, queue: Queue | None = None) -> Array"),
             "An array over the memory that __dlpack__ exports, as Buffer.from_dlpack does.");
  module.def("_require_sound_capsule", &require_valid_capsule, nb::arg("capsule").none(),
             nb::sig("def _require_sound_capsule(capsule: object) -> None"),
             "Raises BufferError if a field of the capsule's DLPack tensor is not usable.");
  module.def(
      "_dlpack_device_of",
      [](nb::handle producer) {
        const auto device = dlpack::device_of_producer(producer);
        return nb::make_tuple(device.type, device.id);
      },
      nb::arg("producer").none(),
      nb::sig("def _dlpack_device_of(producer: object) -> tuple[int, int]"),
      "Returns the result of the producer's __dlpack_device__. Raises BufferError if that is not\n"
      "a device.");
  module.def(
      "_says_read_only", &reports_read_only, nb::arg("obj").none(),
      nb::sig("def _says_read_only(obj: object) -> bool"),
      "Whether the buffer protocol or an interface of `obj` reports its memory as read-only.");
  module.def("_queue_for", &to_queue, nb::arg("queue").none(), nb::arg("device").none(),
             nb::sig("def _queue_for(queue: Queue | None, device: Device | str | None) -> Queue"),
             "`queue`, else the default queue of `device`, else the current queue.");
}

}  // namespace isthmus::python
