// SPDX-License-Identifier: Apache-2.0
// Copies, fills, prefetch and advice.

#include "transfer/transfers.hpp"

#include <cstring>

#include "core/arguments.hpp"
#include "core/byte_counts.hpp"
#include "core/waiting.hpp"

namespace isthmus::python {
namespace {

std::size_t remaining_bytes(const Endpoint& endpoint) {
  return endpoint.raw.offset <= endpoint.nbytes ? endpoint.nbytes - endpoint.raw.offset : 0;
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
  Pattern pattern{};
  pattern.bytes[0] = static_cast<char>(static_cast<unsigned char>(byte));
  return pattern;
}

// Converts an integer to one byte, and other objects to their bytes. Arrays have __index__ but are
// not integers.
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
  Pattern pattern{};
  pattern.nbytes = static_cast<std::size_t>(length);
  std::memcpy(pattern.bytes, held.view.buf, pattern.nbytes);
  return pattern;
}

// The library rejects all work in a forked child. Reading memory that the host can access needs no
// work.
bool is_reading_in_child(const Endpoint& destination, const Endpoint& source,
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

struct ByteRange {
  Endpoint endpoint;
  std::size_t nbytes;
};

ByteRange to_range(const RangeRequest& request) {
  ByteRange range;
  range.endpoint = to_endpoint(request.buffer, Access::write, "buffer");
  range.endpoint.raw.offset = to_size(request.offset, "offset");
  range.nbytes = to_bytes_or(request.nbytes, "nbytes", remaining_bytes(range.endpoint));
  require_range(range.endpoint, range.nbytes, "buffer");
  return range;
}

}  // namespace

nb::object copy(const CopyRequest& request, const OperationArguments& arguments) {
  Endpoint destination = to_endpoint(request.destination, Access::write, "destination");
  Endpoint source = to_endpoint(request.source, Access::read, "source");
  destination.raw.offset = to_size(request.destination_offset, "destination offset");
  source.raw.offset = to_size(request.source_offset, "source offset");
  const auto nbytes = to_bytes_or(request.nbytes, "nbytes", remaining_bytes(source));
  require_range(source, nbytes, "source");
  require_range(destination, nbytes, "destination");
  if (is_reading_in_child(destination, source, arguments) && source.raw.buffer != nullptr) {
    read_in_child(*buffer_of(request.source), source.raw.offset,
                  static_cast<char*>(destination.raw.pointer) + destination.raw.offset, nbytes);
    return nb::none();
  }
  return run_copy(arguments, nbytes, destination, source,
                  [&](const isthmus_operation_t* options, isthmus_event_t** event) {
                    return isthmus_copy(arguments.queue, &destination.raw, &source.raw, nbytes,
                                        options, event);
                  });
}

nb::object copy_2d(const Copy2dRequest& request, const OperationArguments& arguments) {
  Endpoint destination = to_endpoint(request.destination, Access::write, "destination");
  Endpoint source = to_endpoint(request.source, Access::read, "source");
  destination.raw.offset = to_size(request.destination_offset, "destination offset");
  source.raw.offset = to_size(request.source_offset, "source offset");
  const auto width = to_size(request.width, "width");
  const auto height = to_size(request.height, "height");
  const auto destination_pitch = to_size_or(request.destination_pitch, "destination pitch", width);
  const auto source_pitch = to_size_or(request.source_pitch, "source pitch", width);
  require_range(source, extent_2d(width, height, source_pitch, "source"), "source");
  require_range(destination, extent_2d(width, height, destination_pitch, "destination"),
                "destination");
  return run_copy(arguments, width * height, destination, source,
                  [&](const isthmus_operation_t* options, isthmus_event_t** event) {
                    return isthmus_copy_2d(arguments.queue, &destination.raw, destination_pitch,
                                           &source.raw, source_pitch, width, height, options,
                                           event);
                  });
}

nb::object fill(const RangeRequest& request, nb::handle value,
                const OperationArguments& arguments) {
  ByteRange range = to_range(request);
  const auto pattern = to_pattern(value);
  return run_operation({arguments, range.nbytes, range.endpoint.direct, {&range.endpoint, nullptr}},
                       [&](const isthmus_operation_t* options, isthmus_event_t** event) {
                         return isthmus_fill(arguments.queue, &range.endpoint.raw, pattern.bytes,
                                             pattern.nbytes, range.nbytes, options, event);
                       });
}

nb::object prefetch(const RangeRequest& request, bool to_host,
                    const OperationArguments& arguments) {
  ByteRange range = to_range(request);
  return run_operation({arguments, range.nbytes, false, {&range.endpoint, nullptr}},
                       [&](const isthmus_operation_t* options, isthmus_event_t** event) {
                         return isthmus_prefetch(arguments.queue, &range.endpoint.raw, range.nbytes,
                                                 to_host ? 1 : 0, options, event);
                       });
}

nb::object advise(const RangeRequest& request, nb::handle advice,
                  const OperationArguments& arguments) {
  ByteRange range = to_range(request);
  const auto number = to_size(advice, "advice");
  if (number > UINT32_MAX) {
    raise_python(error_type(ISTHMUS_ERROR_INVALID_ARGUMENT), "advice %zu does not fit in 32 bits",
                 number);
  }
  return run_operation({arguments, range.nbytes, false, {&range.endpoint, nullptr}},
                       [&](const isthmus_operation_t* options, isthmus_event_t** event) {
                         return isthmus_advise(arguments.queue, &range.endpoint.raw, range.nbytes,
                                               static_cast<std::uint32_t>(number), options, event);
                       });
}

nb::object copy_strided(Endpoint& destination, Endpoint& source, const ArrayLayout& target_layout,
                        const ArrayNumbers& source_strides, const OperationArguments& arguments) {
  using Sizes = std::vector<std::size_t>;
  const Sizes shape(target_layout.shape.begin(), target_layout.shape.end());
  const Sizes target_steps(target_layout.strides.begin(), target_layout.strides.end());
  const Sizes source_steps(source_strides.begin(), source_strides.end());
  return run_copy(arguments, packed_bytes(target_layout), destination, source,
                  [&](const isthmus_operation_t* options, isthmus_event_t** event) {
                    return isthmus_copy_nd(
                        arguments.queue, &destination.raw, target_steps.data(), &source.raw,
                        source_steps.data(), shape.data(), shape.size(),
                        static_cast<std::size_t>(target_layout.item), options, event);
                  });
}

void copy_endpoints(Endpoint& destination, Endpoint& source, std::size_t nbytes) {
  const OperationArguments arguments{nb::handle{}, nb::handle{}, true};
  static_cast<void>(run_copy(arguments, nbytes, destination, source,
                             [&](const isthmus_operation_t* options, isthmus_event_t** event) {
                               return isthmus_copy(nullptr, &destination.raw, &source.raw, nbytes,
                                                   options, event);
                             }));
}

namespace {

nb::object copy_gathered(Endpoint& destination, Endpoint& source, const ArrayView& view,
                         const OperationArguments& arguments) {
  const auto packed = dense_strides(ArrayNumbers(view.shape), view.type.item);
  const auto dtype = view.type.dtype;
  const auto ndim = view.shape.size();
  const isthmus_array_t destination_array{destination.raw, dtype, ndim, view.shape.data(),
                                          packed.data()};
  const isthmus_array_t source_array{source.raw, dtype, ndim, view.shape.data(),
                                     view.strides.data()};
  return run_copy(arguments, view.nbytes, destination, source,
                  [&](const isthmus_operation_t* options, isthmus_event_t** event) {
                    return isthmus_copy_array(arguments.queue, &destination_array, &source_array,
                                              ISTHMUS_CASTING_NO, options, event);
                  });
}

}  // namespace

void copy_packed(const ArrayView& view, Endpoint& destination) {
  Endpoint source = buffer_endpoint(view.buffer);
  source.raw.offset = view.offset;
  const OperationArguments arguments{nb::handle{}, nb::handle{}, true};
  if (!view.is_c_dense) {
    static_cast<void>(copy_gathered(destination, source, view, arguments));
    return;
  }
  if (is_reading_in_child(destination, source, arguments)) {
    read_in_child(view.buffer, view.offset, destination.raw.pointer, view.nbytes);
    return;
  }
  copy_endpoints(destination, source, view.nbytes);
}

nb::object copy_to_buffer(const ArrayView& source, nb::handle type, std::size_t alignment,
                          PoolUse use) {
  nb::object object = make_buffer(type, [&](Buffer* self) {
    construct_buffer(self, source.nbytes, source.buffer.kind, alignment, source.buffer.queue_object,
                     nullptr, KindsAllowed::requested_only, use);
  });
  Endpoint destination = buffer_endpoint(*buffer_of(object));
  destination.owner = object;
  copy_packed(source, destination);
  return object;
}

nb::object make_bytes(std::size_t nbytes) {
  return steal_or_raise(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(nbytes)));
}

void copy_out(const ArrayView& source, void* destination, nb::object owner) {
  Endpoint endpoint;
  endpoint.raw.pointer = destination;
  endpoint.nbytes = source.nbytes;
  endpoint.owner = std::move(owner);
  copy_packed(source, endpoint);
}

}  // namespace isthmus::python
