// Array's views: by index, and of another shape.

#include "arguments.hpp"
#include "typed_array.hpp"

namespace isthmus::python {
namespace {

// A view that takes shape dimension by dimension.
struct view_maker {
  const typed_array& of;
  array_layout made{};
  std::size_t offset = of.offset;
  std::size_t axis = 0;  // the next of `of`

  [[nodiscard]] const array_numbers& shape() const { return of.layout->shape; }
  void keep() { keep_part(shape()[axis], of.layout->strides[axis]); }
  void take(nb::handle key);

 private:
  void keep_part(std::int64_t extent, std::int64_t stride) {
    made.shape.push_back(extent);
    made.strides.push_back(stride);
    ++axis;
  }
  void take_slice(nb::handle key);
  void take_index(nb::handle key);
};

void view_maker::take_slice(nb::handle key) {
  Py_ssize_t start = 0, stop = 0, step = 0;
  if (PySlice_Unpack(key.ptr(), &start, &stop, &step) != 0) {
    raise_set();
  }
  if (step < 1) {
    raise_python(PyExc_ValueError, "slices of an Array have a step of 1 or more, not %zd",
                 step);
  }
  const auto length = PySlice_AdjustIndices(shape()[axis], &start, &stop, step);
  const auto stride = of.layout->strides[axis];
  if (length != 0) {
    offset += static_cast<std::size_t>(start * stride);
  }
  keep_part(length, length > 1 ? step * stride : stride);
}

void view_maker::take_index(nb::handle key) {
  const nb::object index = PyBool_Check(key.ptr()) != 0 ? nb::object{} : as_integer(key);
  if (!index.is_valid()) {
    raise_python(PyExc_TypeError,
                 "an Array is indexed by integers, slices and ..., not by %.100s: for other "
                 "choices of elements copy it with to_numpy()",
                 Py_TYPE(key.ptr())->tp_name);
  }
  const auto extent = shape()[axis];
  int overflow = 0;
  const long long asked = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
  const auto found = asked < 0 ? asked + extent : asked;
  if (overflow != 0 || found < 0 || found >= extent) {
    raise_python(PyExc_IndexError, "index %R is out of bounds for dimension %zu, which has %lld",
                 index.ptr(), axis, static_cast<long long>(extent));
  }
  offset += static_cast<std::size_t>(found * of.layout->strides[axis]);
  ++axis;
}

void view_maker::take(nb::handle key) {
  if (PySlice_Check(key.ptr()) != 0) {
    take_slice(key);
  } else {
    take_index(key);
  }
}

std::size_t count_axes(nb::handle keys) {
  std::size_t axes = 0;
  bool has_ellipsis = false;
  for (nb::handle each : nb::borrow<nb::tuple>(keys)) {
    const bool is_ellipsis = each.is(Py_Ellipsis);
    if (is_ellipsis && has_ellipsis) {
      raise_python(PyExc_IndexError, "an index may have one ... only");
    }
    has_ellipsis = has_ellipsis || is_ellipsis;
    axes += is_ellipsis ? 0 : 1;
  }
  return axes;
}

nb::object part_of(const typed_array& of, nb::handle key) {
  const nb::object keys =
      PyTuple_Check(key.ptr()) != 0 ? nb::borrow(key) : nb::object{nb::make_tuple(key)};
  const auto axes = count_axes(keys);
  const auto ndim = of.layout->shape.size();
  if (axes > ndim) {
    raise_python(PyExc_IndexError, "%zu indices for an array of %zu dimensions", axes, ndim);
  }
  view_maker view{of};
  for (nb::handle each : nb::borrow<nb::tuple>(keys)) {
    if (!each.is(Py_Ellipsis)) {
      view.take(each);
      continue;
    }
    for (auto left = ndim - axes; left > 0; --left) {
      view.keep();
    }
  }
  while (view.axis < ndim) {
    view.keep();
  }
  view.made.item = of.layout->item;
  view.made.type = of.layout->type;
  return make_typed_array(of.buffer_object,
                           std::make_shared<const typed_layout>(std::move(view.made)), view.offset);
}

// One extent may be -1: what the others leave.
array_numbers to_new_shape(const nb::args& given, std::int64_t size) {
  const bool is_one = given.size() == 1;
  const nb::object wanted = is_one ? nb::object{given[0]} : nb::object{given};
  const nb::object listed =
      as_integer(wanted).is_valid() ? nb::object{given} : nb::steal(PySequence_List(wanted.ptr()));
  if (!listed.is_valid()) {
    PyErr_Clear();
    raise_python(PyExc_TypeError, "shape must be an integer or a sequence of integers, not %R",
                 wanted.ptr());
  }
  nb::list extents;
  std::int64_t others = 1;
  Py_ssize_t open = -1;
  for (nb::handle each : nb::iter(listed)) {
    if (open < 0 && each.equal(nb::int_(-1))) {
      open = static_cast<Py_ssize_t>(extents.size());
      extents.append(nb::int_(1));
      continue;
    }
    if (__builtin_mul_overflow(others, static_cast<std::int64_t>(to_size(each, "extent")),
                               &others)) {
      raise_python(PyExc_OverflowError, "shape %R does not fit in 63 bits", wanted.ptr());
    }
    extents.append(each);
  }
  auto shape = to_shape(extents);
  if (open >= 0 && others != 0) {
    shape[static_cast<std::size_t>(open)] = size / others;
  }
  return shape;
}

nb::object reshape(const typed_array& self, const nb::args& given) {
  const auto& layout = *self.layout;
  if (!layout.is_c_dense) {
    raise_python(PyExc_ValueError,
                 "reshape() needs elements in C order without gaps: this array has strides %R",
                 to_tuple(layout.strides).ptr());
  }
  auto made = dense_layout(to_new_shape(given, layout.size), *layout.type);
  if (made->size != layout.size) {
    raise_python(PyExc_ValueError, "%lld elements cannot take the shape %R",
                 static_cast<long long>(layout.size), given.ptr());
  }
  return make_typed_array(self.buffer_object, std::move(made), self.offset);
}

}  // namespace

PyObject* array_subscript(PyObject* self, PyObject* key) noexcept {
  const auto* of = typed_array_of(self);
  if (of == nullptr) {
    PyErr_SetString(PyExc_ValueError, "Array.__init__() was not called");
    return nullptr;
  }
  return result_of([=] { return part_of(*of, key); });
}

void bind_array_views(nb::class_<typed_array>& bound) {
  bound.def("reshape", &reshape, nb::arg("shape"),
            nb::sig("def reshape(self, *shape: int | Sequence[int]) -> Array"),
            "The same elements in another shape: integers or one sequence of them, one of which\n"
            "may be -1. Raises ValueError where the numbers of elements differ and for an array\n"
            "that is not in C order without gaps.");
}

}  // namespace isthmus::python
