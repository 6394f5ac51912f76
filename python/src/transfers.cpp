// SPDX-License-Identifier: Apache-2.0
// Copies, fills, prefetch and advice.

#include "transfers.hpp"

#include <cstring>
#include <functional>
#include <numeric>

#include "arguments.hpp"
#include "waiting.hpp"

namespace isthmus::python {
namespace {

std::size_t rest_of(const Place& place) {
  return place.raw.offset <= place.nbytes ? place.nbytes - place.raw.offset : 0;
}

// Bytes from the first to the last of `height` rows.
std::size_t extent_2d(std::size_t width, std::size_t height, std::size_t pitch, const char* role) {
  if (width == 0 || height == 0) {
    return 0;
  }
  if (pitch < width) {
    raise_python(PyExc_ValueError,
                 "pitch of the %s must be at least the width of %zu bytes, not %zu", role, width,
                 pitch);
  }
  std::size_t extent = 0;
  if (__builtin_mul_overflow(height - 1, pitch, &extent) ||
      __builtin_add_overflow(extent, width, &extent)) {
    raise_python(error_type(ISTHMUS_ERROR_OUT_OF_RANGE),
                 "%zu rows with a pitch of %zu bytes do not fit in 64 bits", height, pitch);
  }
  return extent;
}

struct Pattern {
  alignas(16) char bytes[16];
  std::size_t nbytes = 1;
};

Pattern byte_pattern(nb::handle index) {
  int overflow = 0;
  const long long byte = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
  if (overflow != 0 || byte < 0 || byte > 255) {
    raise_python(PyExc_ValueError,
                 "a fill with a number sets every byte: it must lie in 0..255, not %U; for wider "
                 "values pass their bytes, like numpy.float32(1) or (1000).to_bytes(4, 'little')",
                 shown_integer(index).ptr());
  }
  Pattern made{};
  made.bytes[0] = static_cast<char>(static_cast<unsigned char>(byte));
  return made;
}

// An integer is one byte, other objects are their own bytes. Arrays claim to be integers and are
// not.
Pattern to_pattern(nb::handle value) {
  std::optional<nb::python_error> cause;
  if (const nb::object index = as_integer(value, &cause); index.is_valid()) {
    return byte_pattern(index);
  }
  Pinned held;
  if (PyObject_GetBuffer(value.ptr(), &held.view, PyBUF_SIMPLE) != 0) {
    PyErr_Clear();
    raise_type_error(cause, "value must be an integer or bytes, not %.100s",
                     Py_TYPE(value.ptr())->tp_name);
  }
  const auto length = held.view.len;
  if (length != 1 && length != 2 && length != 4 && length != 8 && length != 16) {
    raise_python(PyExc_ValueError, "a pattern must have 1, 2, 4, 8 or 16 bytes, not %zd", length);
  }
  Pattern made{};
  made.nbytes = static_cast<std::size_t>(length);
  std::memcpy(made.bytes, held.view.buf, made.nbytes);
  return made;
}

// The library refuses all work in a forked child. Reading memory that the host can access needs no
// work.
bool is_reading_in_child(const Place& destination, const Place& source,
                         const OperationArguments& arguments) {
  return is_forked_child() && arguments.blocking && destination.raw.buffer == nullptr &&
         source.direct;
}

void read_in_child(const Buffer& buffer, std::size_t offset, void* destination,
                   std::size_t nbytes) {
  const auto info = info_of(buffer);
  if (nbytes != 0) {
    std::memcpy(destination, static_cast<const char*>(info.pointer) + offset, nbytes);
  }
}

struct Part {
  Place where;
  std::size_t nbytes;
};

Part to_part(const PartRequest& request) {
  Part found;
  found.where = to_place(request.buffer, Access::write, "buffer");
  found.where.raw.offset = to_size(request.offset, "offset");
  found.nbytes = to_size_or(request.nbytes, "nbytes", rest_of(found.where));
  require_range(found.where, found.nbytes, "buffer");
  return found;
}

}  // namespace

nb::object copy(const CopyRequest& request, const OperationArguments& arguments) {
  Place to = to_place(request.destination, Access::write, "destination");
  Place from = to_place(request.source, Access::read, "source");
  to.raw.offset = to_size(request.destination_offset, "destination offset");
  from.raw.offset = to_size(request.source_offset, "source offset");
  const auto nbytes = to_size_or(request.nbytes, "nbytes", rest_of(from));
  require_range(from, nbytes, "source");
  require_range(to, nbytes, "destination");
  if (is_reading_in_child(to, from, arguments) && from.raw.buffer != nullptr) {
    read_in_child(*buffer_of(request.source), from.raw.offset,
                  static_cast<char*>(to.raw.pointer) + to.raw.offset, nbytes);
    return nb::none();
  }
  return run_operation({arguments, nbytes, to.direct && from.direct, {&to, &from}},
                       [&](const isthmus_operation_t* with, isthmus_event_t** event) {
                         return isthmus_copy(arguments.queue, &to.raw, &from.raw, nbytes, with,
                                             event);
                       });
}

nb::object copy_2d(const Copy2dRequest& request, const OperationArguments& arguments) {
  Place to = to_place(request.destination, Access::write, "destination");
  Place from = to_place(request.source, Access::read, "source");
  to.raw.offset = to_size(request.destination_offset, "destination offset");
  from.raw.offset = to_size(request.source_offset, "source offset");
  const auto width = to_size(request.width, "width");
  const auto height = to_size(request.height, "height");
  const auto to_pitch = to_size_or(request.destination_pitch, "destination pitch", width);
  const auto from_pitch = to_size_or(request.source_pitch, "source pitch", width);
  require_range(from, extent_2d(width, height, from_pitch, "source"), "source");
  require_range(to, extent_2d(width, height, to_pitch, "destination"), "destination");
  return run_operation({arguments, width * height, to.direct && from.direct, {&to, &from}},
                       [&](const isthmus_operation_t* with, isthmus_event_t** event) {
                         return isthmus_copy_2d(arguments.queue, &to.raw, to_pitch, &from.raw,
                                                from_pitch, width, height, with, event);
                       });
}

nb::object fill(const PartRequest& request, nb::handle value, const OperationArguments& arguments) {
  Part to = to_part(request);
  const auto with_bytes = to_pattern(value);
  return run_operation({arguments, to.nbytes, to.where.direct, {&to.where, nullptr}},
                       [&](const isthmus_operation_t* with, isthmus_event_t** event) {
                         return isthmus_fill(arguments.queue, &to.where.raw, with_bytes.bytes,
                                             with_bytes.nbytes, to.nbytes, with, event);
                       });
}

nb::object prefetch(const PartRequest& request, bool to_host, const OperationArguments& arguments) {
  Part of = to_part(request);
  return run_operation({arguments, of.nbytes, false, {&of.where, nullptr}},
                       [&](const isthmus_operation_t* with, isthmus_event_t** event) {
                         return isthmus_prefetch(arguments.queue, &of.where.raw, of.nbytes,
                                                 to_host ? 1 : 0, with, event);
                       });
}

nb::object advise(const PartRequest& request, nb::handle advice,
                  const OperationArguments& arguments) {
  Part of = to_part(request);
  const auto number = to_size(advice, "advice");
  if (number > UINT32_MAX) {
    raise_python(error_type(ISTHMUS_ERROR_INVALID_ARGUMENT),
                 "advice of %zu does not fit in 32 bits", number);
  }
  return run_operation({arguments, of.nbytes, false, {&of.where, nullptr}},
                       [&](const isthmus_operation_t* with, isthmus_event_t** event) {
                         return isthmus_advise(arguments.queue, &of.where.raw, of.nbytes,
                                               static_cast<std::uint32_t>(number), with, event);
                       });
}

nb::object copy_strided(const StridedCopy& copy, const OperationArguments& arguments) {
  const auto nbytes =
      std::accumulate(copy.shape.begin(), copy.shape.end(), copy.item, std::multiplies<>{});
  return run_operation(
      {arguments, nbytes, copy.to.direct && copy.from.direct, {&copy.to, &copy.from}},
      [&](const isthmus_operation_t* with, isthmus_event_t** event) {
        return isthmus_copy_nd(arguments.queue, &copy.to.raw, copy.to_strides.data(),
                               &copy.from.raw, copy.from_strides.data(), copy.shape.data(),
                               copy.shape.size(), copy.item, with, event);
      });
}

void copy_places(Place& destination, Place& source, std::size_t nbytes) {
  const OperationArguments how{nb::handle{}, nb::handle{}, true};
  static_cast<void>(run_operation(
      {how, nbytes, destination.direct && source.direct, {&destination, &source}},
      [&](const isthmus_operation_t* with, isthmus_event_t** event) {
        return isthmus_copy(nullptr, &destination.raw, &source.raw, nbytes, with, event);
      }));
}

namespace {

nb::object copy_gathered(Place& destination, Place& source, const ArrayView& view,
                         const OperationArguments& arguments) {
  const auto packed = dense_strides(view.shape, view.type.item);
  const auto dtype = view.type.dtype;
  const auto ndim = view.shape.size();
  const isthmus_array_t into{destination.raw, dtype, ndim, view.shape.data(), packed.data()};
  const isthmus_array_t out{source.raw, dtype, ndim, view.shape.data(), view.strides.data()};
  return run_operation(
      {arguments, view.nbytes, destination.direct && source.direct, {&destination, &source}},
      [&](const isthmus_operation_t* with, isthmus_event_t** event) {
        return isthmus_copy_array(arguments.queue, &into, &out, ISTHMUS_CASTING_NO, with, event);
      });
}

}  // namespace

void copy_packed(const ArrayView& view, Place& destination) {
  Place from = buffer_place(view.of);
  from.raw.offset = view.offset;
  const OperationArguments how{nb::handle{}, nb::handle{}, true};
  if (!view.is_c_dense) {
    static_cast<void>(copy_gathered(destination, from, view, how));
    return;
  }
  if (is_reading_in_child(destination, from, how)) {
    read_in_child(view.of, view.offset, destination.raw.pointer, view.nbytes);
    return;
  }
  copy_places(destination, from, view.nbytes);
}

nb::object make_bytes(std::size_t nbytes) {
  nb::object made = nb::steal(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(nbytes)));
  if (!made.is_valid()) {
    raise_set();
  }
  return made;
}

void copy_out(const ArrayView& source, void* destination, nb::object keep) {
  Place into;
  into.raw.pointer = destination;
  into.nbytes = source.nbytes;
  into.keep = std::move(keep);
  copy_packed(source, into);
}

}  // namespace isthmus::python
