// SPDX-License-Identifier: Apache-2.0
// Copies of many ranges in one operation.

#include <cstring>
#include <string>

#include "core/arguments.hpp"
#include "core/byte_counts.hpp"
#include "transfer/bindings.hpp"
#include "transfer/transfers.hpp"

namespace isthmus::python {
namespace {

using RangeList = std::vector<isthmus_range_t>;

[[noreturn]] void raise_bad_shape(nb::handle ranges) {
  raise_python(PyExc_ValueError,
               "ranges must have 3 columns, destination offset, source offset and nbytes, or the "
               "first 2 with a common nbytes, not %R",
               ranges.ptr());
}

// The required number of columns.
std::size_t columns_for(bool has_common_nbytes) { return has_common_nbytes ? 2 : 3; }

// The integers of an array, of any width, in native byte order.
class Integers {
 public:
  explicit Integers(const Py_buffer& view) : view_{view} {
    const char* format = view.format != nullptr ? view.format : "B";
    format += *format == '@' || *format == '=' || *format == '<' ? 1 : 0;
    is_signed_ = *format != '\0' && std::strchr("bhilqn", *format) != nullptr;
    const bool is_supported =
        is_signed_ || (*format != '\0' && std::strchr("BHILQN", *format) != nullptr);
    if (!is_supported || format[1] != '\0') {
      raise_python(PyExc_TypeError,
                   "ranges must be integers in native byte order, not of format '%s'", view.format);
    }
  }

  [[nodiscard]] std::size_t at(Py_ssize_t row, Py_ssize_t column) const {
    const auto* bytes =
        static_cast<const char*>(view_.buf) + row * view_.strides[0] + column * view_.strides[1];
    std::uint64_t value = 0;
    std::memcpy(&value, bytes, static_cast<std::size_t>(view_.itemsize));
    const auto unused_bits = 64 - 8 * static_cast<unsigned>(view_.itemsize);
    const auto number = static_cast<std::int64_t>(value << unused_bits) >> unused_bits;
    if (is_signed_ && number < 0) {
      raise_python(PyExc_ValueError, "range %zd has a negative number in column %zd, %lld", row,
                   column, static_cast<long long>(number));
    }
    return value;
  }

 private:
  const Py_buffer& view_;
  bool is_signed_ = false;
};

RangeList from_array(nb::handle ranges, const Py_buffer& view, bool has_common,
                     std::size_t nbytes) {
  if (view.ndim != 2 || view.shape[1] != static_cast<Py_ssize_t>(columns_for(has_common))) {
    raise_bad_shape(ranges);
  }
  const Integers numbers{view};
  RangeList list;
  list.reserve(static_cast<std::size_t>(view.shape[0]));
  for (Py_ssize_t row = 0; row < view.shape[0]; ++row) {
    list.push_back(
        {numbers.at(row, 0), numbers.at(row, 1), has_common ? nbytes : numbers.at(row, 2)});
  }
  return list;
}

std::size_t to_number(nb::handle value, const char* name, std::size_t row) {
  return to_size(value, (name + (" of range " + std::to_string(row))).c_str());
}

RangeList from_sequence(nb::handle ranges, bool has_common, std::size_t nbytes) {
  RangeList list;
  for (nb::handle row : ranges) {
    const nb::object numbers = steal_or_raise(PySequence_Tuple(row.ptr()));
    if (nb::len(numbers) != columns_for(has_common)) {
      raise_bad_shape(row);
    }
    const auto index = list.size();
    list.push_back({to_number(numbers[0], "destination offset", index),
                    to_number(numbers[1], "source offset", index),
                    has_common ? nbytes : to_number(numbers[2], "nbytes", index)});
  }
  return list;
}

RangeList to_ranges(nb::handle ranges, nb::handle common) {
  const bool has_common = common.is_valid() && !common.is_none();
  const auto nbytes = to_bytes_or(common, "nbytes", 0);
  if (PyObject_CheckBuffer(ranges.ptr()) != 0) {
    Pinned held;
    if (PyObject_GetBuffer(ranges.ptr(), &held.view, PyBUF_FULL_RO) != 0) {
      raise_set();
    }
    return from_array(ranges, held.view, has_common, nbytes);
  }
  if (Py_TYPE(ranges.ptr())->tp_iter == nullptr && PySequence_Check(ranges.ptr()) == 0) {
    raise_wrong_type(ranges,
                     "ranges must be a two-dimensional array of integers or a sequence of tuples");
  }
  return from_sequence(ranges, has_common, nbytes);
}

void require_in_range(const Endpoint& endpoint, std::size_t offset, std::size_t nbytes,
                      std::size_t index, const char* role) {
  if (offset > endpoint.nbytes || nbytes > endpoint.nbytes - offset) {
    raise_python(error_type(ISTHMUS_ERROR_OUT_OF_RANGE),
                 "range %zu: %zu bytes from offset %zu lie outside the %s, which has %zu bytes",
                 index, nbytes, offset, role, endpoint.nbytes);
  }
}

nb::object copy_ranges(nb::handle dst, nb::handle src, nb::handle ranges, nb::handle nbytes,
                       nb::handle queue, nb::handle after, nb::handle blocking) {
  Endpoint destination = to_endpoint(dst, Access::write, "destination");
  Endpoint source = to_endpoint(src, Access::read, "source");
  const auto all = to_ranges(ranges, nbytes);
  std::size_t moved = 0;
  for (std::size_t index = 0; index < all.size(); ++index) {
    const auto& each = all[index];
    require_in_range(source, each.source_offset, each.nbytes, index, "source");
    require_in_range(destination, each.destination_offset, each.nbytes, index, "destination");
    moved += each.nbytes;
  }
  const OperationArguments arguments{queue, after, to_flag(blocking, "blocking")};
  return run_copy(arguments, moved, destination, source,
                  [&](const isthmus_operation_t* options, isthmus_event_t** event) {
                    return isthmus_copy_ranges(arguments.queue, &destination.raw, &source.raw,
                                               all.data(), all.size(), options, event);
                  });
}

}  // namespace

void bind_ranges(nb::module_& module) {
  const auto none = nb::none();
  def_operation(
      module, "copy_ranges", &copy_ranges, nb::arg("dst").none(), nb::arg("src").none(),
      nb::arg("ranges").none(), nb::kw_only(), nb::arg("nbytes") = none,
      nb::sig(
          "def copy_ranges(dst: object, src: object, ranges: object, *, nbytes: ByteCount | None = "
          "None, queue: Queue | None = None, after: Event | Sequence[Event] = (), blocking: "
          "bool = True) -> Event | None"),
      "Copies many ranges of bytes between two endpoints as one operation.\n\n"
      "`ranges`: a two-dimensional array of integers, or a sequence of tuples. Each row is\n"
      "(offset in `dst`, offset in `src`, bytes), or the two offsets if `nbytes` is the size of\n"
      "every range. All are checked before anything is copied. The ranges are copied in no\n"
      "particular order. Raises InvalidArgumentError if two ranges write the same bytes, or one\n"
      "writes bytes that another reads. Otherwise like Buffer.copy_from. On CUDA one kernel\n"
      "copies all ranges.");
}

}  // namespace isthmus::python
