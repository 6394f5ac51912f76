// Array's copies and fills.

#include <array>
#include <cstring>

#include "arguments.hpp"
#include "typed_array.hpp"
#include "transfers.hpp"

namespace isthmus::python {
namespace {

// The other side of a copy: any array that tells its type and shape.
array_place to_other(nb::handle object, access wanted, const char* role) {
  if (buffer_of(object) != nullptr) {
    const byte_view bytes{object};
    const auto told = bytes.get();
    return {to_place(object, wanted, role),
            {{told.shape.begin(), told.shape.end()}, {1}, 1, &byte_type()}};
  }
  if (auto array = to_array_place(object, wanted, role)) {
    return std::move(*array);
  }
  // Those with the buffer protocol that get here refuse it: as read-only, or for want of a host.
  if (auto told = read_interface(object)) {
    require_forward(told->layout, role);
    return {foreign_place(object, *told, wanted, role), std::move(told->layout)};
  }
  return {to_place(object, wanted, role), {}};
}

void require_same(const array_layout& ours, const array_layout& others, const char* role) {
  if (others.type != ours.type) {
    const char* name = others.type != nullptr ? others.type->name : "one that no array here has";
    raise_python(PyExc_TypeError,
                 "the %s has the dtype %s, not this array's %s: convert it, as with astype()", role,
                 name, ours.type->name);
  }
  if (others.shape != ours.shape) {
    raise_python(PyExc_ValueError, "the %s has the shape %R, not this array's %R", role,
                 to_tuple(others.shape).ptr(), to_tuple(ours.shape).ptr());
  }
}

nb::object copy_elements(array_place& to, array_place& from, const operation_arguments& how) {
  const auto& layout = to.layout;
  const bool is_dense_copy = is_empty(layout) || (is_dense(layout, element_order::c) &&
                                                  is_dense(from.layout, element_order::c));
  if (!is_dense_copy) {
    return copy_strided(
        {to.where, from.where, as_sizes(layout.strides), as_sizes(from.layout.strides),
         as_sizes(layout.shape), static_cast<std::size_t>(layout.item)},
        how);
  }
  const auto nbytes = to.where.nbytes;
  return run_operation(
      {how, nbytes, to.where.direct && from.where.direct, {&to.where, &from.where}},
      [&](const isthmus_operation_t* with, isthmus_event_t** event) {
        return isthmus_copy(how.queue, &to.where.raw, &from.where.raw, nbytes, with, event);
      });
}

nb::object copy_from(nb::handle self, nb::handle src, nb::handle queue, nb::handle after,
                     nb::handle blocking) {
  auto to = *to_array_place(self, access::write, "destination");
  auto from = to_other(src, access::read, "source");
  require_same(to.layout, from.layout, "source");
  return copy_elements(to, from, {queue, after, to_flag(blocking, "blocking")});
}

nb::object copy_to(nb::handle self, nb::handle dst, nb::handle queue, nb::handle after,
                   nb::handle blocking) {
  auto from = *to_array_place(self, access::read, "source");
  auto to = to_other(dst, access::write, "destination");
  require_same(from.layout, to.layout, "destination");
  return copy_elements(to, from, {queue, after, to_flag(blocking, "blocking")});
}

// -- fills ----------------------------------------------------------------------------------------

nb::object bytes_of(const void* from, std::size_t nbytes) {
  return nb::steal(
      PyBytes_FromStringAndSize(static_cast<const char*>(from), static_cast<Py_ssize_t>(nbytes)));
}

[[noreturn]] void raise_too_wide(nb::handle value, const element_type& type) {
  raise_python(PyExc_OverflowError, "%R does not fit in %s", value.ptr(), type.name);
}

// Without NumPy.
nb::object integer_item(nb::handle value, const element_type& type) {
  const int unused = 64 - type.item * 8;
  if (type.kind == 'u') {
    const auto number = PyLong_AsUnsignedLongLong(value.ptr());
    if (PyErr_Occurred() != nullptr || number > UINT64_MAX >> unused) {
      PyErr_Clear();
      raise_too_wide(value, type);
    }
    return bytes_of(&number, type.item);
  }
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
  if (overflow != 0 || number > INT64_MAX >> unused || number < INT64_MIN >> unused) {
    raise_too_wide(value, type);
  }
  return bytes_of(&number, type.item);
}

// Whether a number of that kind has a place in elements of the other: as NumPy's casts of the same
// kind.
bool goes_into(char kind, char element) {
  constexpr const char* k_order = "bifc";
  const auto rank = [](char of) { return std::strchr(k_order, of == 'u' ? 'i' : of); };
  return std::strchr("biufc", kind) != nullptr && rank(kind) <= rank(element);
}

// The bytes of `value` as one element.
nb::object to_item(nb::handle value, const element_type& type) {
  const nb::object integer = as_integer(value);
  if (integer.is_valid() && (type.kind == 'i' || type.kind == 'u')) {
    return integer_item(integer, type);
  }
  const auto numpy = nb::module_::import_("numpy");
  if (!integer.is_valid()) {
    const nb::object given = numpy.attr("asarray")(value);
    if (!given.attr("ndim").equal(nb::int_(0))) {
      raise_python(PyExc_ValueError, "a fill takes one value, not an array of shape %R",
                   nb::object(given.attr("shape")).ptr());
    }
    const auto kind = nb::cast<const char*>(nb::object(given.attr("dtype").attr("kind")))[0];
    if (!goes_into(kind, type.kind)) {
      raise_python(PyExc_TypeError, "%R is no value for elements of %s", value.ptr(), type.name);
    }
  }
  const nb::object item =
      numpy.attr("array")(integer.is_valid() ? integer : nb::borrow(value), dtype_of(type));
  return item.attr("tobytes")();
}

// The widest pattern that the library repeats.
constexpr std::int64_t k_widest_pattern = 16;

// Where no pattern serves one element is copied to all places.
nb::object copy_to_all(array_place& to, nb::handle item, const operation_arguments& how) {
  array_place from{to_place(item, access::read, "value"), to.layout};
  from.layout.strides.assign(to.layout.shape.size(), 0);
  return copy_elements(to, from, how);
}

nb::object fill_array(nb::handle self, nb::handle value, nb::handle queue, nb::handle after,
                      nb::handle blocking) {
  auto to = *to_array_place(self, access::write, "array");
  const nb::object item = to_item(value, *to.layout.type);
  const operation_arguments how{queue, after, to_flag(blocking, "blocking")};
  const bool takes_pattern =
      typed_array_of(self)->layout->is_c_dense && to.layout.item <= k_widest_pattern;
  if (!takes_pattern) {
    return copy_to_all(to, item, how);
  }
  const auto nbytes = to.where.nbytes;
  return run_operation({how, nbytes, to.where.direct, {&to.where, nullptr}},
                       [&](const isthmus_operation_t* with, isthmus_event_t** event) {
                         return isthmus_fill(
                             how.queue, &to.where.raw, PyBytes_AS_STRING(item.ptr()),
                             static_cast<std::size_t>(to.layout.item), nbytes, with, event);
                       });
}

nb::object fresh_array(const typed_array& self) { return to_numpy(view_of(self)); }

}  // namespace

void bind_array_copies(nb::class_<typed_array>& bound) {
  const auto none = nb::none();
  bound
      .def("to_numpy", &fresh_array, nb::sig("def to_numpy(self) -> Any"),
           "A fresh ndarray of the same type and shape with a copy of the elements, of any kind.\n"
           "Waits for pending work.")
      .def("copy_from", &copy_from, nb::arg("src").none(), nb::kw_only(), nb::arg("queue") = none,
           nb::arg("after").none() = nb::make_tuple(), nb::arg("blocking").none() = true,
           nb::sig("def copy_from(self, src: object, *, queue: Queue | None = None, after: Event | "
                   "Sequence[Event] = (), blocking: bool = True) -> Event | None"),
           "Copies the elements of an array of the same type and shape: an Array of any kind\n"
           "and device, a NumPy array or another with the buffer protocol, or one with\n"
           "__sycl_usm_array_interface__ or __cuda_array_interface__; either may have gaps.\n\n"
           "`queue` None: this array's. Order, events and `blocking` as in Buffer.copy_from.\n"
           "Raises TypeError for another type or no array, ValueError for another shape and for\n"
           "a dimension that runs backwards.")
      .def("copy_to", &copy_to, nb::arg("dst").none(), nb::kw_only(), nb::arg("queue") = none,
           nb::arg("after").none() = nb::make_tuple(), nb::arg("blocking").none() = true,
           nb::sig("def copy_to(self, dst: object, *, queue: Queue | None = None, after: Event | "
                   "Sequence[Event] = (), blocking: bool = True) -> Event | None"),
           "Copies the elements into `dst`: as copy_from, the other way. Raises ReadOnlyError for\n"
           "a destination that cannot be written.")
      .def(
          "fill", &fill_array, nb::arg("value").none() = 0, nb::kw_only(), nb::arg("queue") = none,
          nb::arg("after").none() = nb::make_tuple(), nb::arg("blocking").none() = true,
          nb::sig("def fill(self, value: object = 0, *, queue: Queue | None = None, after: Event "
                  "| Sequence[Event] = (), blocking: bool = True) -> Event | None"),
          "Sets every element to a number. All else as in copy_from. Raises OverflowError for an\n"
          "integer that does not fit, TypeError for a value of another kind, as 1.5 for integers,\n"
          "and ValueError for an array.");
}

}  // namespace isthmus::python
