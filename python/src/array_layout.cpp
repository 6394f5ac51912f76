#include "array_layout.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace isthmus::python {
namespace {

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

array_numbers ordered_strides(const array_numbers& shape, std::int64_t item, bool last_first) {
  array_numbers strides(shape.size());
  std::int64_t step = item;
  for (std::size_t n = 0; n < shape.size(); ++n) {
    const auto i = last_first ? shape.size() - 1 - n : n;
    strides[i] = step;
    step = times(step, std::max<std::int64_t>(shape[i], 1));
  }
  return strides;
}

}  // namespace

array_numbers dense_strides(const array_numbers& shape, std::int64_t item) {
  return ordered_strides(shape, item, true);
}

bool is_contiguous(const array_layout& of) {
  for (const bool last_first : {true, false}) {
    const auto dense = ordered_strides(of.shape, of.item, last_first);
    bool same = true;
    for (std::size_t i = 0; i < of.shape.size(); ++i) {
      same = same && (of.shape[i] <= 1 || of.strides[i] == dense[i]);
    }
    if (same) {
      return true;
    }
  }
  return false;
}

bool is_empty(const array_layout& of) noexcept {
  return std::find(of.shape.begin(), of.shape.end(), 0) != of.shape.end();
}

array_box box_of(const array_layout& what) {
  std::int64_t low = 0;
  std::int64_t high = 0;
  for (std::size_t i = 0; i < what.shape.size() && !is_empty(what); ++i) {
    const auto last = times(what.strides[i], what.shape[i] - 1);
    auto& end = last < 0 ? low : high;
    end = plus(end, last);
  }
  return {low, plus(minus(high, low), what.item)};
}

std::size_t item_size_of(nb::handle typestr) {
  std::size_t size = 0;
  if (PyUnicode_Check(typestr.ptr()) != 0) {
    const char* text = PyUnicode_AsUTF8(typestr.ptr());
    size = text != nullptr ? plain_item_size(text) : 0;
    PyErr_Clear();
  }
  return size != 0 ? size : item_size_by_numpy(typestr);
}

}  // namespace isthmus::python
