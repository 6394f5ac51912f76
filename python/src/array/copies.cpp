// SPDX-License-Identifier: Apache-2.0
// Array's copies, fills and assignments.

#include <array>

#include "array/bindings.hpp"
#include "array/elements.hpp"
#include "array/keys.hpp"
#include "array/sides.hpp"
#include "array/values.hpp"
#include "core/arguments.hpp"
#include "interop/exchange.hpp"

namespace isthmus::python {
namespace {

// -- copies ---------------------------------------------------------------------------------------

void require_same(const ArrayLayout& own, const ArrayLayout& other, const char* role) {
  if (other.type != own.type) {
    raise_python(PyExc_TypeError,
                 "the %s has the dtype %s, not this array's %s: use isthmus.copyto(), which "
                 "converts, or astype()",
                 role, other.type->name, own.type->name);
  }
  if (other.shape != own.shape) {
    raise_python(PyExc_ValueError, "the %s has the shape %R, not this array's %R", role,
                 to_tuple(other.shape).ptr(), to_tuple(own.shape).ptr());
  }
}

nb::object copy_from(nb::handle self, nb::handle src, nb::handle queue, nb::handle after,
                     nb::handle blocking) {
  auto destination = to_side(self, Access::write, "destination");
  auto source = to_side(src, Access::read, "source");
  require_same(destination.layout, source.layout, "source");
  return copy_sides(destination, source, ISTHMUS_CASTING_NO,
                    {queue, after, to_flag(blocking, "blocking")});
}

nb::object copy_to(nb::handle self, nb::handle dst, nb::handle queue, nb::handle after,
                   nb::handle blocking) {
  auto source = to_side(self, Access::read, "source");
  auto destination = to_side(dst, Access::write, "destination");
  require_same(source.layout, destination.layout, "destination");
  return copy_sides(destination, source, ISTHMUS_CASTING_NO,
                    {queue, after, to_flag(blocking, "blocking")});
}

// -- values ---------------------------------------------------------------------------------------

nb::object fill_side(ArraySide& target, const ElementValue& value,
                     const OperationArguments& arguments) {
  const auto target_array = target.get();
  const auto nbytes = packed_bytes(target.layout);
  return run_operation({arguments, nbytes, target.endpoint.direct, {&target.endpoint, nullptr}},
                       [&](const isthmus_operation_t* options, isthmus_event_t** event) {
                         return isthmus_fill_array(arguments.queue, &target_array, value.bytes,
                                                   value.type->dtype, ISTHMUS_CASTING_UNSAFE,
                                                   options, event);
                       });
}

// A number without a type may have a fraction, so integer arrays reject it.
Conversion conversion_of_fill(nb::handle value, const ElementType& out) {
  const bool takes_fractions = out.kind == 'f' || out.kind == 'c';
  return takes_fractions && is_untyped_number(value) ? Conversion::assign : Conversion::cast;
}

nb::object fill(nb::handle self, nb::handle value, nb::handle queue, nb::handle after,
                nb::handle blocking) {
  return fill_array(self, value, {queue, after, to_flag(blocking, "blocking")});
}

// -- copyto and assignments -----------------------------------------------------------------------

// NumPy's assignments accept additional leading dimensions of size 1.
void drop_leading_unit_axes(ArrayLayout& layout, std::size_t ndim) {
  while (layout.shape.size() > ndim && layout.shape[0] == 1) {
    layout.shape.erase(0);
    layout.strides.erase(0);
  }
}

// A number as NumPy casts or assigns it; std::nullopt for other objects.
std::optional<ElementValue> number_for(nb::handle src, const ElementType& out,
                                       isthmus_casting_t casting, Conversion conversion) {
  // A cast may drop an imaginary part; an assignment of a Python number may not.
  const bool drops = conversion == Conversion::force && PyComplex_CheckExact(src.ptr()) != 0;
  auto value = to_value(src, drops ? to_element_type(src.type()) : out, casting);
  if (value) {
    warn_if_imaginary_discarded(*value->type, out);
  }
  return value;
}

nb::object copy_into(ArraySide& target, nb::handle src, isthmus_casting_t casting,
                     Conversion conversion, const OperationArguments& arguments) {
  require_castable(src, *target.layout.type, casting);
  if (const auto number = number_for(src, *target.layout.type, casting, conversion)) {
    return fill_side(target, *number, arguments);
  }
  auto source = to_source(src, *target.layout.type, conversion);
  drop_leading_unit_axes(source.layout, target.layout.shape.size());
  require_copyable(target.layout, source.layout, casting);
  return copy_sides(target, source, casting, arguments);
}

nb::object copyto(nb::handle dst, nb::handle src, nb::handle casting, nb::handle queue,
                  nb::handle after, nb::handle blocking) {
  auto destination = to_side(dst, Access::write, "destination");
  const auto casting_rule = to_casting(casting);
  const auto conversion =
      casting_rule == ISTHMUS_CASTING_UNSAFE ? Conversion::force : Conversion::cast;
  return copy_into(destination, src, casting_rule, conversion,
                   {queue, after, to_flag(blocking, "blocking")});
}

void assign(PyObject* self, const TypedArray& array, PyObject* key, PyObject* value) {
  const KeyList keys{key};
  const auto element = element_at(array, keys);
  if (element && write_element(array, *element, value)) {
    return;
  }
  const nb::object view =
      element ? element_view(self, array, *element) : view_at(self, array, keys);
  auto destination = to_side(view, Access::write, "array");
  static_cast<void>(copy_into(destination, value, ISTHMUS_CASTING_UNSAFE, Conversion::assign,
                              OperationArguments{nb::handle{}, nb::handle{}, true}));
}

// -- overlap --------------------------------------------------------------------------------------

bool shares_memory(nb::handle one, nb::handle other) {
  const auto first = to_side(one, Access::read, "a");
  const auto second = to_side(other, Access::read, "b");
  const auto a = first.get();
  const auto b = second.get();
  return isthmus_arrays_overlap(&a, &b) != 0;
}

// Widens the side to all bytes between its first and last element.
void widen(ArraySide& side) {
  if (side.layout.is_empty()) {
    return;
  }
  const auto box = box_of(side.layout);
  auto& origin = side.endpoint.raw;
  if (origin.buffer != nullptr) {
    origin.offset -= static_cast<std::size_t>(-box.start);
  } else {
    origin.pointer = static_cast<char*>(origin.pointer) + box.start;
  }
  side.layout = {{{box.nbytes}, {1}}, 1, &byte_type()};
}

bool may_share_memory(nb::handle one, nb::handle other) {
  auto first = to_side(one, Access::read, "a");
  auto second = to_side(other, Access::read, "b");
  widen(first);
  widen(second);
  const auto a = first.get();
  const auto b = second.get();
  return isthmus_arrays_overlap(&a, &b) != 0;
}

nb::object copy_to_numpy(const TypedArray& self) { return to_numpy(view_of(self)); }

void bind_methods(nb::class_<TypedArray>& bound) {
  bound.def("to_numpy", &copy_to_numpy, nb::sig("def to_numpy(self) -> Any"),
            "A new ndarray of the same type and shape with a copy of the elements, of any kind.\n"
            "Waits for pending work.");
  def_operation(
      bound, "copy_from", &copy_from, nb::arg("src").none(), nb::kw_only(),
      nb::sig("def copy_from(self, src: object, *, queue: Queue | None = None, after: Event | "
              "Sequence[Event] = (), blocking: bool = True) -> Event | None"),
      "Copies the elements of an array of the same type and shape: an Array of any kind\n"
      "and device, a NumPy array or another with the buffer protocol, or one with\n"
      "__sycl_usm_array_interface__, __cuda_array_interface__ or __dlpack__; with any\n"
      "strides. Overlapping arrays are copied as if the source were copied to temporary\n"
      "memory first.\n\n"
      "`queue` None: this array's. Order, events and `blocking` are those of\n"
      "Buffer.copy_from. Raises TypeError for another type or an object that is not an\n"
      "array, ValueError for another shape; copyto converts and broadcasts.");
  def_operation(
      bound, "copy_to", &copy_to, nb::arg("dst").none(), nb::kw_only(),
      nb::sig("def copy_to(self, dst: object, *, queue: Queue | None = None, after: Event | "
              "Sequence[Event] = (), blocking: bool = True) -> Event | None"),
      "Copies the elements into `dst`: copy_from in the other direction. Raises\n"
      "ReadOnlyError for a destination that cannot be written.");
  def_operation(
      bound, "fill", &fill, nb::arg("value").none() = 0, nb::kw_only(),
      nb::sig("def fill(self, value: object = 0, *, queue: Queue | None = None, after: Event "
              "| Sequence[Event] = (), blocking: bool = True) -> Event | None"),
      "Sets every element to a number. Otherwise like copy_from. Raises OverflowError for\n"
      "an integer that does not fit, TypeError for a value of another kind, for example 1.5\n"
      "for integers, and ValueError for an array.");
}

void bind_functions(nb::module_& module) {
  def_operation(
      module, "copyto", &copyto, nb::arg("dst").none(), nb::arg("src").none(), nb::kw_only(),
      nb::arg("casting").none() = "same_kind",
      nb::sig("def copyto(dst: object, src: object, *, casting: str = 'same_kind', queue: Queue | "
              "None = None, after: Event | Sequence[Event] = (), blocking: bool = True) -> Event | "
              "None"),
      "Copies `src`, converted and broadcast by NumPy's rules, into `dst`.\n\n"
      "`dst`: an Array, or another array that Array.copy_to accepts. `src`: an object that\n"
      "Array.copy_from accepts, a number, or an object that `numpy.asarray` accepts, such as\n"
      "nested lists. `casting`: \"no\", \"equiv\", \"safe\", \"same_kind\" or \"unsafe\", as in\n"
      "numpy.can_cast; with \"unsafe\" also objects, text and dates, converted as by NumPy's\n"
      "astype. Overlapping arrays are copied as if the source were copied to temporary memory\n"
      "first. `queue`, `after` and `blocking` are those of Buffer.copy_from.\n\n"
      "Complex elements that become real cause a ComplexWarning. array[key] = src does the same\n"
      "with casting \"unsafe\", as NumPy does, except for text, dates and None (TypeError), and\n"
      "waits. Python numbers become elements as by float() or int(), so that 1j as a real\n"
      "number is a TypeError. An integer must fit (OverflowError). Raises TypeError for a\n"
      "conversion that `casting` does not allow, ValueError for shapes that do not fit,\n"
      "ReadOnlyError.");
  module.def("shares_memory", &shares_memory, nb::arg("a").none(), nb::arg("b").none(),
             nb::sig("def shares_memory(a: object, b: object) -> bool"),
             "Whether two arrays have a byte of an element in common. Exact up to a bound on\n"
             "the work, above which it is True if their extents overlap. Accepts what copyto\n"
             "accepts as `dst`.");
  module.def("may_share_memory", &may_share_memory, nb::arg("a").none(), nb::arg("b").none(),
             nb::sig("def may_share_memory(a: object, b: object) -> bool"),
             "Whether the extents of two arrays overlap, even if their elements do not.");
}

}  // namespace

nb::object fill_array(nb::handle array, nb::handle value, const OperationArguments& arguments) {
  auto destination = to_side(array, Access::write, "array");
  if (const auto number = to_value(value, *destination.layout.type, ISTHMUS_CASTING_SAME_KIND)) {
    return fill_side(destination, *number, arguments);
  }
  auto source = to_source(value, *destination.layout.type,
                          conversion_of_fill(value, *destination.layout.type));
  if (!source.layout.shape.empty()) {
    raise_python(PyExc_ValueError, "a fill takes one value, not an array of shape %R",
                 to_tuple(source.layout.shape).ptr());
  }
  const auto& type = *destination.layout.type;
  if (isthmus_can_cast(source.layout.type->dtype, type.dtype, ISTHMUS_CASTING_SAME_KIND) == 0) {
    return fill_side(destination, *to_value(only_number(source), type, ISTHMUS_CASTING_SAME_KIND),
                     arguments);
  }
  require_copyable(destination.layout, source.layout, ISTHMUS_CASTING_SAME_KIND);
  return copy_sides(destination, source, ISTHMUS_CASTING_SAME_KIND, arguments);
}

PyObject* array_subscript(PyObject* self, PyObject* key) noexcept {
  const auto* array = ready_array(self);
  if (array == nullptr) {
    return nullptr;
  }
  return result_of([=] {
    const KeyList keys{key};
    const auto element = element_at(*array, keys);
    return element ? read_element(*array, *element) : view_at(self, *array, keys);
  });
}

int array_assign(PyObject* self, PyObject* key, PyObject* value) noexcept {
  const auto* array = ready_array(self);
  if (array == nullptr) {
    return -1;
  }
  if (value == nullptr) {
    PyErr_SetString(PyExc_TypeError, "elements of an Array cannot be deleted");
    return -1;
  }
  const auto done = nb::steal(result_of([=] {
    assign(self, *array, key, value);
    return nb::none();
  }));
  return done.is_valid() ? 0 : -1;
}

PyObject* array_item(PyObject* self, Py_ssize_t index) noexcept {
  const auto* array = ready_array(self);
  if (array == nullptr) {
    return nullptr;
  }
  return result_of([=] {
    const nb::object key = nb::steal(PyLong_FromSsize_t(index));
    return nb::steal(array_subscript(self, key.ptr()));
  });
}

void bind_array_copies(nb::module_& module, nb::class_<TypedArray>& bound) {
  bind_methods(bound);
  bind_functions(module);
}

}  // namespace isthmus::python
