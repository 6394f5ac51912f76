// SPDX-License-Identifier: Apache-2.0
#include "array/sides.hpp"

#include "array/values.hpp"
#include "core/arguments.hpp"
#include "core/caller_warning.hpp"
#include "interop/dlpack.hpp"
#include "interop/numpy_items.hpp"
#include "layout/axes.hpp"
#include "layout/dtype.hpp"
#include "transfer/read_only.hpp"

namespace isthmus::python {
namespace {

[[noreturn]] void raise_unknown_type(const char* role) {
  raise_python(PyExc_TypeError,
               "the %s has an unsupported dtype: it must be a bool, integer, float or complex type "
               "in native byte order; convert it, for example with astype()",
               role);
}

// Takes the error of an object that exported no view of itself. Rethrows exceptions that are not
// errors of the protocol.
nb::python_error take_buffer_error() {
  nb::python_error error;
  if (!error.matches(PyExc_BufferError) && !error.matches(PyExc_ValueError) &&
      !error.matches(PyExc_TypeError)) {
    throw error;
  }
  return error;
}

// The side over the view that the object exports by the buffer protocol; std::nullopt if it exports
// none. If the object has the protocol but the export failed, sets `error` to the reason.
std::optional<ArraySide> host_side(nb::handle object, Access access, const char* role,
                                   std::optional<nb::python_error>& error) {
  if (PyObject_CheckBuffer(object.ptr()) == 0) {
    return {};
  }
  ArraySide side;
  side.endpoint.memory = std::make_unique<Pinned>();
  auto& view = side.endpoint.memory->view;
  if (PyObject_GetBuffer(object.ptr(), &view, PyBUF_STRIDES | PyBUF_FORMAT) != 0) {
    error.emplace(take_buffer_error());
    return {};
  }
  if (access == Access::write && (view.readonly != 0 || is_read_only_elsewhere(object))) {
    raise_python(error_type(ISTHMUS_ERROR_READ_ONLY), "%s of type %.100s is read-only", role,
                 Py_TYPE(object.ptr())->tp_name);
  }
  side.layout = layout_of(view);
  side.endpoint.raw.pointer = view.buf;
  side.endpoint.nbytes = static_cast<std::size_t>(view.len);
  return side;
}

ArraySide foreign_side(nb::handle object, const ArrayInterface& interface, Access access,
                       const char* role) {
  ArraySide side{foreign_endpoint(object, interface, access, role), interface.layout};
  if (!interface.empty) {
    side.endpoint.raw.offset = static_cast<std::size_t>(-box_of(interface.layout).start);
  }
  return side;
}

ArraySide dlpack_side(nb::handle object, Access access, const char* role) {
  const nb::object array = array_from_dlpack(object, nb::none());
  return side_of(*typed_array_of(array), access, role);
}

ArraySide bytes_side(nb::handle object, Access access, const char* role) {
  const ByteView bytes{object};
  const auto view = bytes.get();
  return {to_endpoint(object, access, role), {{ArrayNumbers(view.shape), {1}}, 1, &byte_type()}};
}

// The side of a NumPy array whose type has no name in the buffer protocol. TypeError for a type
// that arrays do not support; std::nullopt for other objects.
std::optional<ArraySide> bfloat16_side(nb::handle object, Access access, const char* role) {
  if (PyObject_HasAttrString(object.ptr(), "dtype") == 0) {
    return {};
  }
  const auto& type = to_element_type(nb::object(object.attr("dtype")));
  std::optional<nb::python_error> error;
  auto side = type.format == nullptr ? host_side(object.attr("view")("uint16"), access, role, error)
                                     : std::nullopt;
  if (side) {
    side->layout.type = &type;
  }
  return side;
}

// std::nullopt for an object that does not describe its elements.
std::optional<ArraySide> find_side(nb::handle object, Access access, const char* role) {
  if (const auto* array = typed_array_of(object)) {
    return side_of(*array, access, role);
  }
  if (buffer_of(object) != nullptr) {
    return bytes_side(object, access, role);
  }
  std::optional<nb::python_error> error;
  if (auto host = host_side(object, access, role, error)) {
    return host;
  }
  if (PyType_Check(object.ptr()) != 0) {
    return {};
  }
  if (const auto interface = read_interface(object, access)) {
    return foreign_side(object, *interface, access, role);
  }
  if (error) {
    auto side = bfloat16_side(object, access, role);
    return side ? std::move(side) : throw *std::move(error);
  }
  if (PyObject_HasAttrString(object.ptr(), "__dlpack__") != 0) {
    return dlpack_side(object, access, role);
  }
  return {};
}

// NumPy moved this class between versions.
nb::object complex_warning() {
  const nb::object numpy = nb::module_::import_("numpy");
  return nb::hasattr(numpy, "exceptions") ? numpy.attr("exceptions").attr("ComplexWarning")
                                          : numpy.attr("ComplexWarning");
}

bool is_integers(Py_UCS4 kind) { return kind == 'i' || kind == 'u'; }

// Whether NumPy has to convert the object to the destination's type directly, so that an integer
// that does not fit, or a complex number, is an error. `kind` is the kind of the array that NumPy
// converts the object to by default.
bool needs_direct_conversion(nb::handle object, Py_UCS4 kind, const ElementType& out,
                             Conversion conversion) {
  if (conversion != Conversion::assign) {
    const bool is_python_sequence =
        PyList_Check(object.ptr()) != 0 || PyTuple_Check(object.ptr()) != 0;
    return is_python_sequence && is_integers(kind) &&
           is_integers(static_cast<unsigned char>(out.kind));
  }
  const bool has_array = PyObject_HasAttrString(object.ptr(), "__array__") != 0;
  if (kind == 'O' && (has_array || is_untyped_number(object))) {
    return true;
  }
  return PySequence_Check(object.ptr()) != 0 && !has_array &&
         (kind == 'f' || kind == 'c' || kind == 'O' || is_integers(kind));
}

// Rethrows conversion errors. Any other exception, which comes from a foreign __float__ or __int__,
// becomes the cause of a TypeError.
[[noreturn]] void raise_conversion(nb::python_error& failed, const ElementType& out) {
  for (PyObject* own : {PyExc_TypeError, PyExc_ValueError, PyExc_ArithmeticError, PyExc_Warning,
                        PyExc_MemoryError}) {
    if (failed.matches(own) && !failed.matches(PyExc_ZeroDivisionError)) {
      throw std::move(failed);
    }
  }
  if (!failed.matches(PyExc_Exception)) {
    throw std::move(failed);
  }
  nb::raise_from(failed, PyExc_TypeError, "the source has a value that cannot be converted to %s",
                 out.name);
}

// The dtype in native byte order.
nb::object native_type(nb::handle array) { return array.attr("dtype").attr("newbyteorder")("="); }

nb::object numpy_array_for(nb::handle object, const ElementType& out, Conversion conversion) {
  nb::object array = numpy_array_of(object);
  const nb::object kind = array.attr("dtype").attr("kind");  // one letter
  const bool again =
      needs_direct_conversion(object, PyUnicode_READ_CHAR(kind.ptr(), 0), out, conversion);
  if (!again &&
      (conversion != Conversion::force || find_numpy_type(native_type(array)) != nullptr)) {
    return array;
  }
  try {
    const bool has_numpy_dtype = out.dtype != ISTHMUS_BFLOAT16;  // added by the package ml_dtypes
    const nb::object dtype = has_numpy_dtype ? require_numpy_dtype(out) : nb::str("float64");
    return again ? numpy_array_of(object, dtype) : array.attr("astype")(dtype);
  } catch (nb::python_error& failed) {
    raise_conversion(failed, out);
  }
}

// Whether the object is a NumPy array of a type that arrays do not support. Views of such an array,
// or of its bytes, are rejected.
bool is_numpy_only(nb::handle object) {
  return is_of_numpy(object) && find_numpy_type(nb::object(object.attr("dtype"))) == nullptr;
}

ArraySide numpy_side(nb::handle object, const ElementType& out, Conversion conversion) {
  const nb::object array = numpy_array_for(object, out, conversion);
  const nb::object native = native_type(array);
  static_cast<void>(to_element_type(native));  // throws TypeError with the reason
  auto side =
      find_side(array.attr("astype")(native, nb::arg("copy") = false), Access::read, "source");
  if (!side || side->layout.type == nullptr) {
    raise_unknown_type("source");
  }
  return std::move(*side);
}

}  // namespace

ArraySide side_of(const TypedArray& array, Access access, const char* role) {
  if (access == Access::write && array.is_locked) {
    raise_python(error_type(ISTHMUS_ERROR_READ_ONLY), "the %s is a read-only view", role);
  }
  ArraySide side{buffer_endpoint(buffer_in(array)), *array.layout};
  side.endpoint.raw.offset = array.offset;
  side.endpoint.owner = array.memory.object();
  return side;
}

ArraySide to_side(nb::handle object, Access access, const char* role) {
  auto found = find_side(object, access, role);
  if (!found) {
    raise_wrong_type(object,
                     "%s must be an Array, a Buffer, or have the buffer protocol, __dlpack__, "
                     "__sycl_usm_array_interface__ or __cuda_array_interface__",
                     role);
  }
  if (found->layout.type == nullptr) {
    raise_unknown_type(role);
  }
  return std::move(*found);
}

ArraySide to_source(nb::handle object, const ElementType& out, Conversion conversion) {
  if ((conversion == Conversion::force || is_numpy_scalar(object)) && is_numpy_only(object)) {
    return numpy_side(object, out, conversion);
  }
  auto found = find_side(object, Access::read, "source");
  return found && found->layout.type != nullptr ? std::move(*found)
                                                : numpy_side(object, out, conversion);
}

const ElementType* element_type_of(nb::handle object, const char* role) {
  const auto found = find_side(object, Access::read, role);
  return found ? found->layout.type : nullptr;
}

nb::object numpy_array_of(nb::handle object, nb::handle dtype) {
  return nb::module_::import_("isthmus._host_arrays").attr("host_array")(object, dtype);
}

nb::object only_number(ArraySide& side) {
  const auto& type = *side.layout.type;
  alignas(16) std::byte element[32];
  Endpoint destination;
  destination.raw.pointer = element;
  destination.nbytes = type.item;
  copy_endpoints(destination, side.endpoint, type.item);
  return to_number(element, type);
}

void warn_if_imaginary_discarded(const ElementType& source_type, const ElementType& target_type) {
  if (source_type.kind != 'c' || target_type.kind == 'c' || target_type.kind == 'b') {
    return;
  }
  static PyObject* const category = complex_warning().release().ptr();
  warn_caller(category, "Casting complex values to real discards the imaginary part");
}

void require_copyable(const ArrayLayout& target_layout, const ArrayLayout& source_layout,
                      isthmus_casting_t casting) {
  static constexpr const char* k_rule_names[] = {"no", "safe", "same_kind", "unsafe"};
  if (source_layout.type != target_layout.type &&
      isthmus_can_cast(source_layout.type->dtype, target_layout.type->dtype, casting) == 0) {
    raise_python(PyExc_TypeError, "cannot cast %s to %s according to the casting rule '%s'",
                 source_layout.type->name, target_layout.type->name, k_rule_names[casting]);
  }
  if (source_layout.shape != target_layout.shape) {
    static_cast<void>(broadcast(source_layout, target_layout.shape));
  }
  warn_if_imaginary_discarded(*source_layout.type, *target_layout.type);
}

nb::object copy_sides(ArraySide& target, ArraySide& source, isthmus_casting_t casting,
                      const OperationArguments& arguments) {
  const auto target_array = target.get();
  const auto source_array = source.get();
  return run_copy(arguments, packed_bytes(target.layout), target.endpoint, source.endpoint,
                  [&](const isthmus_operation_t* options, isthmus_event_t** event) {
                    return isthmus_copy_array(arguments.queue, &target_array, &source_array,
                                              casting, options, event);
                  });
}

isthmus_casting_t to_casting(nb::handle name) {
  static constexpr struct {
    const char* name;
    isthmus_casting_t casting;
  } k_rules[] = {{"no", ISTHMUS_CASTING_NO},
                 {"equiv", ISTHMUS_CASTING_NO},
                 {"safe", ISTHMUS_CASTING_SAFE},
                 {"same_kind", ISTHMUS_CASTING_SAME_KIND},
                 {"unsafe", ISTHMUS_CASTING_UNSAFE}};
  require_text(name, "casting");
  for (const auto& each : k_rules) {
    if (PyUnicode_CompareWithASCIIString(name.ptr(), each.name) == 0) {
      return each.casting;
    }
  }
  raise_python(PyExc_ValueError,
               "casting must be 'no', 'equiv', 'safe', 'same_kind' or 'unsafe', not %R",
               name.ptr());
}

}  // namespace isthmus::python
