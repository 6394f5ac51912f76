// SPDX-License-Identifier: Apache-2.0
#include "layout/layout.hpp"

#include <cstdlib>
#include <cstring>

#include "core/arguments.hpp"
#include "core/errors.hpp"

namespace isthmus::python {
namespace {

// The item size of a typestr in the protocol's own notation, such as "<f4"; 0 for other text.
std::size_t item_size_without_numpy(const char* text) {
  static constexpr struct {
    char kind;
    const char* sizes[6];
  } k_types[] = {{'b', {"1"}},
                 {'i', {"1", "2", "4", "8"}},
                 {'u', {"1", "2", "4", "8"}},
                 {'f', {"2", "4", "8", "16"}},
                 {'c', {"8", "16", "32"}},
                 {'m', {"8"}}};
  if (std::strchr("<>|=", *text) != nullptr && *text != '\0') {
    ++text;
  }
  for (const auto& [kind, sizes] : k_types) {
    if (*text != kind) {
      continue;
    }
    for (const char* size : sizes) {
      if (size != nullptr && std::strcmp(text + 1, size) == 0) {
        return static_cast<std::size_t>(std::atoi(size));
      }
    }
  }
  return 0;
}

// The item size of any other typestr, according to NumPy, as in dpctl.
std::size_t item_size_by_numpy(nb::handle typestr) {
  try {
    const nb::object dtype = nb::module_::import_("numpy").attr("dtype")(typestr);
    const nb::object kind = dtype.attr("kind");
    if (std::strchr("biufcm", nb::cast<const char*>(kind)[0]) != nullptr) {
      return nb::cast<std::size_t>(dtype.attr("itemsize"));
    }
  } catch (nb::python_error&) {
    // NumPy does not know the type either
  }
  return 0;
}

}  // namespace

ArrayNumbers dense_strides(const ArrayNumbers& shape, std::int64_t item) {
  if (!isthmus::detail::fits_memory(shape, item)) {
    throw TooFar{};
  }
  return isthmus::detail::dense_strides(shape, item);
}

ArrayBox box_of(const ArrayLayout& layout) {
  if (layout.is_empty()) {
    return {0, layout.item};
  }
  const auto range = layout.checked_byte_range(layout.item);
  if (!range) {
    throw TooFar{};
  }
  return {range->begin, range->end - range->begin};
}

TypedLayout::TypedLayout(ArrayLayout description) : ArrayLayout{std::move(description)} {
  offset = 0;
  if (is_empty()) {
    is_c_dense = true;
    return;
  }
  const auto range = checked_byte_range(item);
  if (!range || !isthmus::detail::fits_memory(shape, item)) {
    throw TooFar{};
  }
  size = count();
  nbytes = static_cast<std::size_t>(size * item);
  before = static_cast<std::size_t>(-range->begin);
  extent = static_cast<std::size_t>(range->end - range->begin);
  is_c_dense = is_contiguous(item);
}

TypedLayout::~TypedLayout() {
  if (reversed) {
    reversed->reverse_of = nullptr;
  }
}

void require_fit(const ArrayNumbers& shape, const ElementType& type) {
  if (!isthmus::detail::fits_memory(shape, type.item)) {
    raise_python(error_type(ISTHMUS_ERROR_OUT_OF_RANGE),
                 "an array of shape %R and dtype %s does not fit in 63 bits", to_tuple(shape).ptr(),
                 type.name);
  }
}

SharedLayout dense_layout(ArrayNumbers shape, const ElementType& type) {
  require_fit(shape, type);
  auto strides = isthmus::detail::dense_strides(shape, type.item);
  return share_layout({{std::move(shape), std::move(strides)}, type.item, &type});
}

void require_element_multiples(const void* first, const TypedLayout& layout, const char* protocol) {
  const auto& type = *layout.type;
  if (layout.size == 0) {
    return;
  }
  if (reinterpret_cast<std::uintptr_t>(first) % type.alignment != 0) {
    raise_python(PyExc_BufferError,
                 "%s: elements of %s at %p are not aligned: their address must be a multiple of %d",
                 protocol, type.name, first, type.alignment);
  }
  for (std::size_t i = 0; i < layout.shape.size(); ++i) {
    if (layout.shape[i] > 1 && layout.strides[i] % layout.item != 0) {
      raise_python(PyExc_BufferError,
                   "%s: elements of %s lie %lld bytes apart along axis %zu, which is not a "
                   "multiple of the element size, %d: pass a contiguous copy",
                   protocol, type.name, static_cast<long long>(layout.strides[i]), i, type.item);
    }
  }
}

void require_max_ndim(std::size_t ndim) {
  if (ndim > max_axes) {
    raise_python(PyExc_ValueError, "an array has at most %zu dimensions, not %zu", max_axes, ndim);
  }
}

ArrayNumbers to_shape(nb::handle argument) {
  ArrayNumbers shape;
  std::optional<nb::python_error> cause;
  if (const nb::object extent = as_integer(argument, &cause); extent.is_valid()) {
    shape.push_back(static_cast<std::int64_t>(to_size(extent, "shape")));
    return shape;
  }
  const nb::object all =
      to_tuple_of(argument, "shape must be an integer or a sequence of integers", std::move(cause));
  require_max_ndim(nb::len(all));
  for (nb::handle each : all) {
    shape.push_back(static_cast<std::int64_t>(to_size(each, "extent")));
  }
  return shape;
}

nb::object to_tuple(NumberSpan numbers) {
  nb::object tuple = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(numbers.size())));
  for (std::size_t i = 0; tuple.is_valid() && i < numbers.size(); ++i) {
    PyObject* number = PyLong_FromLongLong(numbers[i]);
    if (number == nullptr) {
      raise_set();
    }
    PyTuple_SET_ITEM(tuple.ptr(), static_cast<Py_ssize_t>(i), number);
  }
  if (!tuple.is_valid()) {
    raise_set();
  }
  return tuple;
}

void drop_idle_strides(ArrayLayout& layout) {
  for (std::size_t i = 0; i < layout.shape.size(); ++i) {
    layout.strides[i] = layout.shape[i] > 1 ? layout.strides[i] : layout.item;
  }
}

ArrayNumbers strides_in_items(NumberSpan strides, std::int64_t item) {
  ArrayNumbers item_strides(strides);
  for (auto& each : item_strides) {
    each /= item;
  }
  return item_strides;
}

std::size_t item_size_of(nb::handle typestr) {
  std::size_t size = 0;
  if (PyUnicode_Check(typestr.ptr()) != 0) {
    const char* text = PyUnicode_AsUTF8(typestr.ptr());
    size = text != nullptr ? item_size_without_numpy(text) : 0;
    PyErr_Clear();
  }
  return size != 0 ? size : item_size_by_numpy(typestr);
}

}  // namespace isthmus::python
