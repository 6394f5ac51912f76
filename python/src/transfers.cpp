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

std::size_t rest_of(const place& of) {
  return of.raw.offset <= of.nbytes ? of.nbytes - of.raw.offset : 0;
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

struct pattern {
  alignas(16) char bytes[16];
  std::size_t nbytes = 1;
};

pattern byte_pattern(nb::handle index) {
  int overflow = 0;
  const long long byte = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
  if (overflow != 0 || byte < 0 || byte > 255) {
    raise_python(PyExc_ValueError,
                 "a fill with a number sets every byte: it must lie in 0..255, not %U; for wider "
                 "values pass their bytes, like numpy.float32(1) or (1000).to_bytes(4, 'little')",
                 shown_integer(index).ptr());
  }
  pattern made{};
  made.bytes[0] = static_cast<char>(static_cast<unsigned char>(byte));
  return made;
}

// An integer is one byte, other objects are their own bytes. Arrays claim to be integers and are
// not.
pattern to_pattern(nb::handle value) {
  std::optional<nb::python_error> cause;
  if (const nb::object index = as_integer(value, &cause); index.is_valid()) {
    return byte_pattern(index);
  }
  pinned held;
  if (PyObject_GetBuffer(value.ptr(), &held.view, PyBUF_SIMPLE) != 0) {
    PyErr_Clear();
    raise_type_error(cause, "value must be an integer or bytes, not %.100s",
                     Py_TYPE(value.ptr())->tp_name);
  }
  const auto length = held.view.len;
  if (length != 1 && length != 2 && length != 4 && length != 8 && length != 16) {
    raise_python(PyExc_ValueError, "a pattern must have 1, 2, 4, 8 or 16 bytes, not %zd", length);
  }
  pattern made{};
  made.nbytes = static_cast<std::size_t>(length);
  std::memcpy(made.bytes, held.view.buf, made.nbytes);
  return made;
}

// The library refuses all work in a forked child. Reading memory that the host can access needs no
// work.
bool is_reading_in_child(const place& to, const place& from, const operation_arguments& how) {
  return is_forked_child() && how.blocking && to.raw.buffer == nullptr && from.direct;
}

void read_in_child(const buffer& from, std::size_t offset, void* to, std::size_t nbytes) {
  const auto info = info_of(from);
  if (nbytes != 0) {
    std::memcpy(to, static_cast<const char*>(info.pointer) + offset, nbytes);
  }
}

struct part {
  place where;
  std::size_t nbytes;
};

part to_part(const part_request& what) {
  part found;
  found.where = to_place(what.buffer, access::write, "buffer");
  found.where.raw.offset = to_size(what.offset, "offset");
  found.nbytes = to_size_or(what.nbytes, "nbytes", rest_of(found.where));
  require_range(found.where, found.nbytes, "buffer");
  return found;
}

}  // namespace

nb::object copy(const copy_request& what, const operation_arguments& how) {
  place to = to_place(what.destination, access::write, "destination");
  place from = to_place(what.source, access::read, "source");
  to.raw.offset = to_size(what.destination_offset, "destination offset");
  from.raw.offset = to_size(what.source_offset, "source offset");
  const auto nbytes = to_size_or(what.nbytes, "nbytes", rest_of(from));
  require_range(from, nbytes, "source");
  require_range(to, nbytes, "destination");
  if (is_reading_in_child(to, from, how) && from.raw.buffer != nullptr) {
    read_in_child(*buffer_of(what.source), from.raw.offset,
                  static_cast<char*>(to.raw.pointer) + to.raw.offset, nbytes);
    return nb::none();
  }
  return run_operation({how, nbytes, to.direct && from.direct, {&to, &from}},
                       [&](const isthmus_operation_t* with, isthmus_event_t** event) {
                         return isthmus_copy(how.queue, &to.raw, &from.raw, nbytes, with, event);
                       });
}

nb::object copy_2d(const copy_2d_request& what, const operation_arguments& how) {
  place to = to_place(what.destination, access::write, "destination");
  place from = to_place(what.source, access::read, "source");
  to.raw.offset = to_size(what.destination_offset, "destination offset");
  from.raw.offset = to_size(what.source_offset, "source offset");
  const auto width = to_size(what.width, "width");
  const auto height = to_size(what.height, "height");
  const auto to_pitch = to_size_or(what.destination_pitch, "destination pitch", width);
  const auto from_pitch = to_size_or(what.source_pitch, "source pitch", width);
  require_range(from, extent_2d(width, height, from_pitch, "source"), "source");
  require_range(to, extent_2d(width, height, to_pitch, "destination"), "destination");
  return run_operation({how, width * height, to.direct && from.direct, {&to, &from}},
                       [&](const isthmus_operation_t* with, isthmus_event_t** event) {
                         return isthmus_copy_2d(how.queue, &to.raw, to_pitch, &from.raw, from_pitch,
                                                width, height, with, event);
                       });
}

nb::object fill(const part_request& what, nb::handle value, const operation_arguments& how) {
  part to = to_part(what);
  const auto with_bytes = to_pattern(value);
  return run_operation({how, to.nbytes, to.where.direct, {&to.where, nullptr}},
                       [&](const isthmus_operation_t* with, isthmus_event_t** event) {
                         return isthmus_fill(how.queue, &to.where.raw, with_bytes.bytes,
                                             with_bytes.nbytes, to.nbytes, with, event);
                       });
}

nb::object prefetch(const part_request& what, bool to_host, const operation_arguments& how) {
  part of = to_part(what);
  return run_operation({how, of.nbytes, false, {&of.where, nullptr}},
                       [&](const isthmus_operation_t* with, isthmus_event_t** event) {
                         return isthmus_prefetch(how.queue, &of.where.raw, of.nbytes,
                                                 to_host ? 1 : 0, with, event);
                       });
}

nb::object advise(const part_request& what, nb::handle advice, const operation_arguments& how) {
  part of = to_part(what);
  const auto number = to_size(advice, "advice");
  if (number > UINT32_MAX) {
    raise_python(error_type(ISTHMUS_ERROR_INVALID_ARGUMENT),
                 "advice of %zu does not fit in 32 bits", number);
  }
  return run_operation({how, of.nbytes, false, {&of.where, nullptr}},
                       [&](const isthmus_operation_t* with, isthmus_event_t** event) {
                         return isthmus_advise(how.queue, &of.where.raw, of.nbytes,
                                               static_cast<std::uint32_t>(number), with, event);
                       });
}

nb::object copy_strided(const strided_copy& what, const operation_arguments& how) {
  const auto nbytes =
      std::accumulate(what.shape.begin(), what.shape.end(), what.item, std::multiplies<>{});
  return run_operation({how, nbytes, what.to.direct && what.from.direct, {&what.to, &what.from}},
                       [&](const isthmus_operation_t* with, isthmus_event_t** event) {
                         return isthmus_copy_nd(how.queue, &what.to.raw, what.to_strides.data(),
                                                &what.from.raw, what.from_strides.data(),
                                                what.shape.data(), what.shape.size(), what.item,
                                                with, event);
                       });
}

void copy_places(place& to, place& from, std::size_t nbytes) {
  const operation_arguments how{nb::handle{}, nb::handle{}, true};
  static_cast<void>(run_operation({how, nbytes, to.direct && from.direct, {&to, &from}},
                                  [&](const isthmus_operation_t* with, isthmus_event_t** event) {
                                    return isthmus_copy(nullptr, &to.raw, &from.raw, nbytes, with,
                                                        event);
                                  }));
}

namespace {

nb::object copy_gathered(place& to, place& from, const array_view& what,
                         const operation_arguments& how) {
  const auto packed = dense_strides(what.shape, what.type.item);
  const auto dtype = what.type.dtype;
  const auto ndim = what.shape.size();
  const isthmus_array_t into{to.raw, dtype, ndim, what.shape.data(), packed.data()};
  const isthmus_array_t out{from.raw, dtype, ndim, what.shape.data(), what.strides.data()};
  return run_operation({how, what.nbytes, to.direct && from.direct, {&to, &from}},
                       [&](const isthmus_operation_t* with, isthmus_event_t** event) {
                         return isthmus_copy_array(how.queue, &into, &out, ISTHMUS_CASTING_NO, with,
                                                   event);
                       });
}

}  // namespace

void copy_packed(const array_view& what, place& to) {
  place from = buffer_place(what.of);
  from.raw.offset = what.offset;
  const operation_arguments how{nb::handle{}, nb::handle{}, true};
  if (!what.is_c_dense) {
    static_cast<void>(copy_gathered(to, from, what, how));
    return;
  }
  if (is_reading_in_child(to, from, how)) {
    read_in_child(what.of, what.offset, to.raw.pointer, what.nbytes);
    return;
  }
  copy_places(to, from, what.nbytes);
}

nb::object make_bytes(std::size_t nbytes) {
  nb::object made = nb::steal(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(nbytes)));
  if (!made.is_valid()) {
    raise_set();
  }
  return made;
}

void copy_out(const array_view& from, void* to, nb::object keep) {
  place into;
  into.raw.pointer = to;
  into.nbytes = from.nbytes;
  into.keep = std::move(keep);
  copy_packed(from, into);
}

}  // namespace isthmus::python
