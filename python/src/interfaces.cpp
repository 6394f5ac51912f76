#include "interfaces.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "arguments.hpp"
#include "current.hpp"

namespace isthmus::python {
namespace {

constexpr const char* k_interface = "__sycl_usm_array_interface__";

nb::object entry(nb::handle dictionary, const char* key) {
  return nb::borrow(PyDict_GetItemString(dictionary.ptr(), key));
}

void check_version(nb::handle dictionary) {
  const nb::object version = entry(dictionary, "version");
  if (!version.is_valid()) {
    raise_python(PyExc_ValueError, "%s has no version: it must be 1", k_interface);
  }
  const nb::object number = as_integer(version);
  if (!number.is_valid()) {
    raise_python(PyExc_TypeError, "version of %s must be the integer 1, not %R", k_interface,
                 version.ptr());
  }
  if (!number.equal(nb::int_(1))) {
    raise_python(PyExc_ValueError, "version of %s must be 1, not %R", k_interface, version.ptr());
  }
}

void read_data(nb::handle dictionary, adoption& into) {
  const nb::object data = entry(dictionary, "data");
  if (!data.is_valid() || PySequence_Check(data.ptr()) == 0 || nb::len(data) != 2) {
    raise_python(PyExc_ValueError, "data of %s must be (pointer, read-only flag), not %R",
                 k_interface, data.is_valid() ? data.ptr() : Py_None);
  }
  const nb::object pointer = data[0];
  const nb::object flag = data[1];
  into.pointer = to_pointer(pointer, "data pointer");
  const int read_only = PyObject_IsTrue(flag.ptr());
  if (read_only < 0) {
    raise_set();
  }
  into.read_only = read_only != 0;
}

// The default queue where it is of this context, else a new one on the pointer's device.
nb::object queue_in_context(const context& in, const void* pointer) {
  isthmus_pointer_info_t info{};
  info.struct_size = sizeof info;
  check(isthmus_pointer_query(in.raw.get(), pointer, &info));
  device_handle where;
  if (info.device != nullptr) {
    where = device_handle::retained(info.device);
  } else {
    check(isthmus_context_device(in.raw.get(), 0, where.out()));
  }
  queue_handle found;
  check(isthmus_queue_default(where.get(), found.out()));
  const auto key = isthmus_context_key(isthmus_queue_context(found.get()));
  if (key != isthmus_context_key(in.raw.get())) {
    queue_handle made;
    check(isthmus_queue_create(in.raw.get(), where.get(), made.out()));
    found = std::move(made);
  }
  return wrap(std::move(found));
}

nb::object read_queue(nb::handle dictionary, const void* pointer) {
  const nb::object given = entry(dictionary, "syclobj");
  if (given.is_valid() && queue_of(given) != nullptr) {
    return given;
  }
  if (given.is_valid() && context_of(given) != nullptr) {
    return queue_in_context(*context_of(given), pointer);
  }
  if (given.is_valid() && (device_of(given) != nullptr || PyUnicode_Check(given.ptr()) != 0)) {
    return to_queue(nb::handle{}, given);
  }
  raise_python(
      PyExc_ValueError,
      "syclobj of %s must be an isthmus Queue, Context or Device or a filter string, not %.100s; "
      "objects of dpctl need the sycl back-end, which is not there yet",
      k_interface, given.is_valid() ? Py_TYPE(given.ptr())->tp_name : "missing");
}

std::int64_t to_int64(nb::handle value, const char* what) {
  const nb::object index = as_integer(value);
  if (!index.is_valid()) {
    raise_python(PyExc_TypeError, "%s of %s must be integers, not %R", what, k_interface,
                 value.ptr());
  }
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
  if (overflow != 0) {
    raise_python(PyExc_OverflowError, "%s of %s: %R does not fit in 63 bits", what, k_interface,
                 index.ptr());
  }
  return number;
}

std::vector<std::int64_t> to_numbers(nb::handle values, const char* what) {
  std::vector<std::int64_t> numbers;
  nb::object iterator = nb::steal(PyObject_GetIter(values.ptr()));
  if (!iterator.is_valid()) {
    PyErr_Clear();
    raise_python(PyExc_ValueError, "%s of %s must be a sequence of integers, not %R", what,
                 k_interface, values.ptr());
  }
  for (nb::handle each : nb::iter(values)) {
    numbers.push_back(to_int64(each, what));
  }
  return numbers;
}

std::vector<std::int64_t> read_shape(nb::handle dictionary) {
  const nb::object given = entry(dictionary, "shape");
  if (!given.is_valid()) {
    raise_python(PyExc_ValueError, "%s has no shape", k_interface);
  }
  auto shape = to_numbers(given, "shape");
  for (const auto extent : shape) {
    if (extent < 0) {
      raise_python(PyExc_ValueError, "shape of %s has a negative extent: %R", k_interface,
                   given.ptr());
    }
  }
  return shape;
}

// "<f4" and the like; 0 for anything else.
std::size_t plain_item_size(const char* text) {
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

// What is not written in the protocol's own way is asked of NumPy, as dpctl does.
std::size_t item_size_by_numpy(nb::handle typestr) {
  try {
    const nb::object dtype = nb::module_::import_("numpy").attr("dtype")(typestr);
    const nb::object kind = dtype.attr("kind");
    if (std::strchr("biufcm", nb::cast<const char*>(kind)[0]) != nullptr) {
      return nb::cast<std::size_t>(dtype.attr("itemsize"));
    }
  } catch (nb::python_error&) {
    // no type to NumPy either
  }
  return 0;
}

std::size_t read_item_size(nb::handle dictionary) {
  const nb::object typestr = entry(dictionary, "typestr");
  if (!typestr.is_valid()) {
    raise_python(PyExc_ValueError, "%s has no typestr", k_interface);
  }
  std::size_t size = 0;
  if (PyUnicode_Check(typestr.ptr()) != 0) {
    const char* text = PyUnicode_AsUTF8(typestr.ptr());
    size = text != nullptr ? plain_item_size(text) : 0;
    PyErr_Clear();
  }
  if (size == 0) {
    size = item_size_by_numpy(typestr);
  }
  if (size == 0) {
    raise_python(PyExc_ValueError, "typestr of %s must name a number or bool, as '<f4', not %R",
                 k_interface, typestr.ptr());
  }
  return size;
}

// The numbers of a dictionary reach beyond any address.
struct too_far {};

std::int64_t times(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) throw too_far{};
  return product;
}
std::int64_t plus(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) throw too_far{};
  return sum;
}

std::int64_t minus(std::int64_t a, std::int64_t b) {
  std::int64_t difference = 0;
  if (__builtin_sub_overflow(a, b, &difference)) throw too_far{};
  return difference;
}

using numbers = std::vector<std::int64_t>;

numbers dense_strides(const numbers& shape, bool last_first) {
  numbers strides(shape.size());
  std::int64_t step = 1;
  for (std::size_t n = 0; n < shape.size(); ++n) {
    const auto i = last_first ? shape.size() - 1 - n : n;
    strides[i] = step;
    step = times(step, std::max<std::int64_t>(shape[i], 1));
  }
  return strides;
}

// In C or Fortran order without gaps; where an extent is 1 or less its stride says nothing.
bool is_contiguous(const numbers& shape, const numbers& strides) {
  for (const bool last_first : {true, false}) {
    const auto dense = dense_strides(shape, last_first);
    bool same = true;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      same = same && (shape[i] <= 1 || strides[i] == dense[i]);
    }
    if (same) {
      return true;
    }
  }
  return false;
}

std::vector<std::int64_t> read_strides(nb::handle dictionary,
                                       const std::vector<std::int64_t>& shape) {
  const nb::object given = entry(dictionary, "strides");
  if (!given.is_valid() || given.is_none()) {
    return dense_strides(shape, true);
  }
  auto strides = to_numbers(given, "strides");
  if (strides.size() != shape.size()) {
    raise_python(PyExc_ValueError,
                 "strides of %s must be as many as the shape has extents, %zu, not %zu",
                 k_interface, shape.size(), strides.size());
  }
  return strides;
}

// Lowest and highest element that indices reach, counted from the first. Empty arrays reach that
// one.
struct reach {
  std::int64_t low = 0;
  std::int64_t high = 0;
};
reach reach_of(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& strides) {
  reach found;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0) {
      return {};
    }
    const auto last = times(strides[i], shape[i] - 1);
    auto& end = last < 0 ? found.low : found.high;
    end = plus(end, last);
  }
  return found;
}

told_interface read_entries(nb::handle dictionary) {
  told_interface told;
  check_version(dictionary);
  read_data(dictionary, told.what);
  told.queue = read_queue(dictionary, told.what.pointer);
  const auto shape = read_shape(dictionary);
  const auto item = static_cast<std::int64_t>(read_item_size(dictionary));
  const auto strides = read_strides(dictionary, shape);
  const nb::object offset_given = entry(dictionary, "offset");
  const auto offset = offset_given.is_valid() ? to_int64(offset_given, "offset") : 0;
  const auto reached = reach_of(shape, strides);
  const auto span = times(plus(minus(reached.high, reached.low), 1), item);
  const auto start = times(plus(offset, reached.low), item);
  const auto base = reinterpret_cast<std::uintptr_t>(told.what.pointer);
  std::uintptr_t first = 0;
  if (__builtin_add_overflow(base, start, &first) ||
      first > UINTPTR_MAX - static_cast<std::uintptr_t>(span)) {
    throw too_far{};
  }
  told.what.pointer = reinterpret_cast<void*>(first);
  told.what.nbytes = static_cast<std::size_t>(span);
  told.empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
  told.contiguous = is_contiguous(shape, strides);
  return told;
}

}  // namespace

bool has_interface(nb::handle object) { return nb::hasattr(object, k_interface); }

told_interface read_interface(nb::handle object) {
  const nb::object dictionary = object.attr(k_interface);
  if (PyDict_Check(dictionary.ptr()) == 0) {
    raise_python(PyExc_ValueError, "%s must be a dict, not %.100s", k_interface,
                 Py_TYPE(dictionary.ptr())->tp_name);
  }
  try {
    return read_entries(dictionary);
  } catch (const too_far&) {
    raise_python(PyExc_ValueError, "%s reaches beyond any address, 2**64: %R", k_interface,
                 dictionary.ptr());
  }
}

}  // namespace isthmus::python
