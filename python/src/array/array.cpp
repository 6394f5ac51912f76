// SPDX-License-Identifier: Apache-2.0
// Array: its creation and its class.

#include "array/array.hpp"

#include "array/bindings.hpp"
#include "buffer/life_scopes.hpp"
#include "core/arguments.hpp"

namespace isthmus::python {
namespace {

ArrayNumbers to_strides(nb::handle argument, const ArrayLayout& layout) {
  const nb::object all = to_tuple_of(argument, "strides must be a sequence of integers");
  if (nb::len(all) != layout.shape.size()) {
    raise_python(PyExc_ValueError,
                 "strides must have one number for each of the %zu dimensions, not %zu",
                 layout.shape.size(), nb::len(all));
  }
  ArrayNumbers strides;
  for (nb::handle each : all) {
    strides.push_back(to_int64(each, "stride"));
  }
  for (const auto each : strides) {
    if (each % layout.item != 0) {
      raise_python(PyExc_ValueError,
                   "strides are in bytes and must be multiples of the element size, %lld, not %R",
                   static_cast<long long>(layout.item), argument.ptr());
    }
  }
  return strides;
}

SharedLayout to_layout(nb::handle shape, nb::handle dtype, nb::handle strides) {
  const auto& type = to_element_type(dtype);
  auto extents = to_shape(shape);
  if (strides.is_none()) {
    return dense_layout(std::move(extents), type);
  }
  ArrayLayout layout{{std::move(extents)}, type.item, &type};
  layout.strides = to_strides(strides, layout);
  try {
    return share_layout(std::move(layout));
  } catch (const TooFar&) {
    raise_python(error_type(ISTHMUS_ERROR_OUT_OF_RANGE),
                 "shape %R with strides %R does not fit in 63 bits", shape.ptr(), strides.ptr());
  }
}

// ClosedError for a freed buffer.
void require_within_buffer(const TypedArray& array) {
  const auto& layout = *array.layout;
  const auto& buffer = buffer_in(array);
  if (array.offset > buffer.nbytes || layout.before > array.offset ||
      layout.extent > buffer.nbytes - (array.offset - layout.before)) {
    const nb::object before = nb::steal(
        layout.before == 0
            ? PyUnicode_FromString("")
            : PyUnicode_FromFormat(" (%zu of them before its first element)", layout.before));
    raise_python(error_type(ISTHMUS_ERROR_OUT_OF_RANGE),
                 "an array of shape %R and dtype %s takes %zu bytes%U, which from offset %zu lie "
                 "outside the buffer, which has %zu bytes",
                 to_tuple(layout.shape).ptr(), layout.type->name, layout.extent, before.ptr(),
                 array.offset, buffer.nbytes);
  }
  const auto first = reinterpret_cast<std::uintptr_t>(info_of(buffer).pointer) + array.offset;
  if (layout.size != 0 && first % layout.type->alignment != 0) {
    raise_python(
        PyExc_ValueError,
        "offset %zu puts elements at %p, which is not a multiple of %d bytes, the alignment of %s",
        array.offset, reinterpret_cast<void*>(first), layout.type->alignment, layout.type->name);
  }
}

void init(TypedArray* self, nb::handle buffer, nb::handle shape, nb::handle dtype,
          nb::handle strides, nb::handle offset) {
  static_cast<void>(require_buffer(buffer));
  TypedArray array{ArrayMemory{nb::borrow(buffer)}, to_layout(shape, dtype, strides),
                   to_size(offset, "offset")};
  require_within_buffer(array);
  new (self) TypedArray{std::move(array)};
}

Py_ssize_t length_of(PyObject* self) noexcept {
  const auto* array = ready_array(self);
  if (array == nullptr) {
    return -1;
  }
  if (array->layout->shape.empty()) {
    PyErr_SetString(PyExc_TypeError, "an array of 0 dimensions has no length");
    return -1;
  }
  return array->layout->shape[0];
}

PyObject* iterate(PyObject* self) noexcept {
  return length_of(self) < 0 ? nullptr : PySeqIter_New(self);
}

int array_contains(PyObject*, PyObject*) noexcept {
  PyErr_SetString(PyExc_TypeError, "an Array does not support `in`: use a copy, array.to_numpy()");
  return -1;
}

template <class Function>
void* slot(Function function) noexcept {
  return reinterpret_cast<void*>(function);
}

PyType_Slot typed_array_slots[] = {{Py_mp_length, slot(&length_of)},
                                   {Py_mp_subscript, slot(&array_subscript)},
                                   {Py_mp_ass_subscript, slot(&array_assign)},
                                   {Py_sq_length, slot(&length_of)},
                                   {Py_sq_item, slot(&array_item)},
                                   {Py_sq_contains, slot(&array_contains)},
                                   {Py_tp_iter, slot(&iterate)},
                                   {Py_nb_bool, slot(&array_to_bool)},
                                   {Py_nb_int, slot(&array_to_int)},
                                   {Py_nb_float, slot(&array_to_float)},
                                   {Py_nb_index, slot(&array_to_index)},
                                   {Py_bf_getbuffer, slot(&array_get_view)},
                                   {Py_bf_releasebuffer, slot(&array_release_view)},
                                   {0, nullptr}};

}  // namespace

nb::object make_fresh_array(SharedLayout layout, isthmus_kind_t kind, nb::object queue,
                            std::size_t alignment, const Resource* resource) {
  const CreationClock clock;
  auto raw = create_buffer(layout->nbytes, kind, alignment, *nb::inst_ptr<python::Queue>(queue),
                           resource, KindsAllowed::any, PoolUse::arrays);
  auto array = make_instance<TypedArray>(types.typed_array, std::move(raw), std::move(queue), kind,
                                         std::move(layout));
  if (clock.is_active()) {
    clock.record(buffer_in(*nb::inst_ptr<TypedArray>(array)));
  }
  return array;
}

void bind_array(nb::module_& module) {
  nb::class_<TypedArray> bound(
      module, "Array", nb::type_slots(typed_array_slots), nb::is_weak_referenceable(), nb::pooled(),
      "A typed N-dimensional array over a Buffer of any kind.\n\n"
      "Array(buffer, shape, dtype=\"float32\", *, strides=None, offset=0)\n\n"
      "`shape`: an integer or a sequence of integers. `dtype`: any object that NumPy accepts as a\n"
      "bool, integer, float or complex type in native byte order. `strides` in bytes, multiples\n"
      "of the element size, which may be negative or 0; None: C order without gaps. `offset`:\n"
      "bytes from the buffer's start to the first element. Copies nothing and keeps the buffer\n"
      "alive. Once the buffer is freed, all operations raise ClosedError.\n\n"
      "Raises OutOfRangeError if an element lies outside the buffer, TypeError for other types,\n"
      "ValueError for negative numbers, strides that fit neither shape nor type and elements\n"
      "that are not aligned, OutOfRangeError past 63 bits.\n\n"
      "array[1:3, ::-2], array[..., 0] and array[None] are views. array[2, 1] of a 2-d array is\n"
      "an element, read after the last operation that writes to it has completed: of shared and\n"
      "host kinds, and of device kind inside isthmus.allow_scalar(). array[1:3] = 0 and\n"
      "array[...] = other copy, as isthmus.copyto does. memoryview(array) and\n"
      "numpy.asarray(array) access shared and host kinds without a copy, after the work pending\n"
      "on the buffer has completed, and device kind only on the host device (see\n"
      "isthmus.strict). Other libraries access it through DLPack and the interfaces.\n"
      "Safe to use from any thread; operations on the elements are ordered as those on the\n"
      "buffer.\n\n"
      "Operators, such as + and ==, and NumPy's functions compute on the host, on the memory that\n"
      "numpy.asarray(array) accesses, and return NumPy arrays; x += y writes to x. For memory "
      "that\n"
      "the host cannot access they raise TypeError. Arrays are hashed by their identity.\n\n"
      "The garbage collector does not traverse arrays: an instance of a subclass that refers to a\n"
      "view of itself, such as x.turned = x.T, exists until that reference is dropped explicitly.");
  types.typed_array = bound;
  bound.def(
      "__init__", &init, nb::arg("buffer").none(), nb::arg("shape").none(),
      nb::arg("dtype").none() = "float32", nb::kw_only(), nb::arg("strides") = nb::none(),
      nb::arg("offset").none() = 0,
      nb::sig("def __init__(self, buffer: Buffer, shape: int | Sequence[int], dtype: Any = "
              "'float32', *, strides: Sequence[int] | None = None, offset: int = 0) -> None"));
  bind_array_properties(bound);
  bind_array_lifetime(bound);
  bind_array_flags(module, bound);
  bind_array_exchange(bound);
  bind_array_views(module, bound);
  bind_array_elements(module, bound);
  bind_array_copies(module, bound);
  bind_array_conversions(bound);
}

}  // namespace isthmus::python
