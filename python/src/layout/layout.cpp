// SPDX-License-Identifier: Apache-2.0
#include "layout/layout.hpp"

#include <algorithm>
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

std::int64_t checked_multiply(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) throw TooFar{};
  return product;
}
std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) throw TooFar{};
  return sum;
}

std::int64_t checked_subtract(std::int64_t a, std::int64_t b) {
  std::int64_t difference = 0;
  if (__builtin_sub_overflow(a, b, &difference)) throw TooFar{};
  return difference;
}

ArrayNumbers ordered_strides(NumberSpan shape, std::int64_t item, ElementOrder order) {
  ArrayNumbers strides(shape.size());
  std::int64_t step = item;
  for (std::size_t n = 0; n < shape.size(); ++n) {
    const auto i = order == ElementOrder::c ? shape.size() - 1 - n : n;
    strides[i] = step;
    step = checked_multiply(step, std::max<std::int64_t>(shape[i], 1));
  }
  return strides;
}

}  // namespace

ArrayNumbers dense_strides(NumberSpan shape, std::int64_t item) {
  return ordered_strides(shape, item, ElementOrder::c);
}

bool is_dense(const ArrayLayout& layout, ElementOrder order) {
  std::int64_t step = layout.item;
  for (std::size_t n = 0; n < layout.shape.size(); ++n) {
    const auto i = order == ElementOrder::c ? layout.shape.size() - 1 - n : n;
    if (layout.shape[i] <= 1) {
      continue;
    }
    if (layout.strides[i] != step || __builtin_mul_overflow(step, layout.shape[i], &step)) {
      return false;
    }
  }
  return true;
}

bool is_contiguous(const ArrayLayout& layout) {
  return is_dense(layout, ElementOrder::c) || is_dense(layout, ElementOrder::fortran);
}

bool is_empty(const ArrayLayout& layout) noexcept {
  return std::find(layout.shape.begin(), layout.shape.end(), 0) != layout.shape.end();
}

ArrayBox box_of(const ArrayLayout& layout) {
  if (is_empty(layout)) {
    return {0, layout.item};
  }
  std::int64_t low = 0;
  std::int64_t high = 0;
  for (std::size_t i = 0; i < layout.shape.size(); ++i) {
    const auto last = checked_multiply(layout.strides[i], layout.shape[i] - 1);
    auto& end = last < 0 ? low : high;
    end = checked_add(end, last);
  }
  return {low, checked_add(checked_subtract(high, low), layout.item)};
}

TypedLayout::TypedLayout(ArrayLayout layout) : ArrayLayout{std::move(layout)} {
  if (is_empty(*this)) {
    is_c_dense = true;
    return;
  }
  size = 1;
  for (const auto each : shape) {
    size = checked_multiply(size, each);
  }
  nbytes = static_cast<std::size_t>(checked_multiply(size, item));
  const auto box = box_of(*this);
  before = static_cast<std::size_t>(-box.start);
  extent = static_cast<std::size_t>(box.nbytes);
  is_c_dense = is_dense(*this, ElementOrder::c);
}

TypedLayout::~TypedLayout() {
  if (reversed) {
    reversed->reverse_of = nullptr;
  }
}

SharedLayout dense_layout(ArrayNumbers shape, const ElementType& type) {
  try {
    auto strides = dense_strides(shape, type.item);
    return share_layout(ArrayLayout{std::move(shape), std::move(strides), type.item, &type});
  } catch (const TooFar&) {
    raise_python(error_type(ISTHMUS_ERROR_OUT_OF_RANGE),
                 "an array of shape %R and dtype %s does not fit in 63 bits", to_tuple(shape).ptr(),
                 type.name);
  }
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

ArrayNumbers to_shape(nb::handle argument) {
  constexpr std::size_t k_max_ndim = PyBUF_MAX_NDIM;
  ArrayNumbers shape;
  std::optional<nb::python_error> cause;
  if (const nb::object extent = as_integer(argument, &cause); extent.is_valid()) {
    shape.push_back(static_cast<std::int64_t>(to_size(extent, "shape")));
    return shape;
  }
  const nb::object all =
      to_tuple_of(argument, "shape must be an integer or a sequence of integers", std::move(cause));
  for (nb::handle each : all) {
    shape.push_back(static_cast<std::int64_t>(to_size(each, "extent")));
  }
  if (shape.size() > k_max_ndim) {
    raise_python(PyExc_ValueError, "an array has at most %zu dimensions, not %zu", k_max_ndim,
                 shape.size());
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

ArrayNumbers strides_in_items(NumberSpan strides, std::int64_t item) {
  ArrayNumbers item_strides{strides.begin(), strides.end()};
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
