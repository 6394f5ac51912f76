// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/copy.hpp"

#include <algorithm>

#include "backend/cuda/pointer.hpp"

namespace isthmus::cuda {
namespace {

unsigned memory_type(const Api& calls, const void* pointer) noexcept {
  return query_pointer(calls, pointer).kind == ISTHMUS_KIND_UNKNOWN ? cu::k_memory_host
                                                                    : cu::k_memory_unified;
}

// The number of bytes from `pointer` on that lie in one registered range of the driver. Returns
// `nbytes` for memory that is not registered.
std::size_t bytes_in_range(const Api& calls, CUdeviceptr pointer, std::size_t nbytes) noexcept {
  const auto attributes = query_pointer(calls, to_pointer(pointer));
  return attributes.kind == ISTHMUS_KIND_HOST
             ? std::min<std::size_t>(nbytes,
                                     to_deviceptr(attributes.base) + attributes.nbytes - pointer)
             : nbytes;
}

CUresult enqueue_pitched(const Api& calls, CUstream stream, const Copy2dShape& shape) noexcept {
  CUDA_MEMCPY2D params;
  params.srcMemoryType = memory_type(calls, shape.source);
  params.srcHost = shape.source;
  params.srcDevice = to_deviceptr(shape.source);
  params.srcPitch = shape.source_pitch;
  params.dstMemoryType = memory_type(calls, shape.destination);
  params.dstHost = shape.destination;
  params.dstDevice = to_deviceptr(shape.destination);
  params.dstPitch = shape.destination_pitch;
  params.WidthInBytes = shape.width;
  params.Height = shape.height;
  return calls.copy_2d(&params, stream);
}

CUresult enqueue_rows(const Api& calls, CUstream stream, const Copy2dShape& shape) noexcept {
  auto outcome = cu::k_success;
  for (std::size_t row = 0; row < shape.height && outcome == cu::k_success; ++row) {
    outcome =
        enqueue_copy(calls, stream, to_deviceptr(shape.destination) + row * shape.destination_pitch,
                     to_deviceptr(shape.source) + row * shape.source_pitch, shape.width);
  }
  return outcome;
}

}  // namespace

CUresult enqueue_divided_copy(const Api& calls, CUstream stream, CUdeviceptr destination,
                              CUdeviceptr source, std::size_t nbytes) noexcept {
  auto outcome = cu::k_success;
  for (std::size_t done = 0; done < nbytes && outcome == cu::k_success;) {
    const auto chunk_bytes = std::min(bytes_in_range(calls, destination + done, nbytes - done),
                                      bytes_in_range(calls, source + done, nbytes - done));
    outcome = calls.copy(destination + done, source + done, chunk_bytes, stream);
    done += chunk_bytes;
  }
  return outcome;
}

CUresult enqueue_copy_2d(const Api& calls, CUstream stream, const Copy2dShape& shape,
                         std::size_t max_pitch) noexcept {
  const bool fits = std::max(shape.source_pitch, shape.destination_pitch) <= max_pitch;
  const auto outcome = fits ? enqueue_pitched(calls, stream, shape) : cu::k_error_INVALID_VALUE;
  return outcome == cu::k_error_INVALID_VALUE ? enqueue_rows(calls, stream, shape) : outcome;
}

}  // namespace isthmus::cuda
