// SPDX-License-Identifier: Apache-2.0
// Contiguous and two-dimensional copies.
//
// The driver derives the direction of a copy from the addresses. A copy from or to pageable memory
// goes through a staging buffer of the driver. The source may be changed once the call returns. The
// call may therefore block the submitting thread until the driver has copied the source.

#include <algorithm>

#include "backend/cuda/pointer.hpp"
#include "backend/cuda/submit.hpp"
#include "core/sizes.hpp"

namespace isthmus::cuda {
namespace {

// A kernel copies rows up to this width faster than the driver. Times of the kernel and the driver
// for 4 MiB (H100): in rows of 64 bytes 117 and 137 us to the device, 15 and 25 us within it; in
// rows of 4 bytes 346 and 1,826 us to the device, 17 and 135 us within it. To the device, rows of
// 128 bytes took 109 and 107 us.
constexpr std::size_t k_max_kernel_width = 64;

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

}  // namespace

// The driver refuses a copy that begins in registered memory and goes beyond it, whichever library
// registered it. It accepts a copy that begins before registered memory. Refused copies are divided
// at the boundaries of registered ranges.
CUresult Queue::copy_bytes(CUdeviceptr destination, CUdeviceptr source,
                           std::size_t nbytes) const noexcept {
  auto outcome = calls().copy(destination, source, nbytes, stream());
  if (outcome != cu::k_error_INVALID_VALUE) {
    return outcome;
  }
  outcome = cu::k_success;
  for (std::size_t done = 0; done < nbytes && outcome == cu::k_success;) {
    const auto chunk_bytes = std::min(bytes_in_range(calls(), destination + done, nbytes - done),
                                      bytes_in_range(calls(), source + done, nbytes - done));
    outcome = calls().copy(destination + done, source + done, chunk_bytes, stream());
    done += chunk_bytes;
  }
  return outcome;
}

Result<Ref<Event>> Queue::do_copy(void* destination, const void* source, std::size_t nbytes,
                                  WaitList after) {
  return submit("cuMemcpyAsync", after, [=, this] {
    return copy_bytes(to_deviceptr(destination), to_deviceptr(source), nbytes);
  });
}

CUresult Queue::copy_pitched(const Copy2dShape& shape) const noexcept {
  CUDA_MEMCPY2D params;
  params.srcMemoryType = memory_type(calls(), shape.source);
  params.srcHost = shape.source;
  params.srcDevice = to_deviceptr(shape.source);
  params.srcPitch = shape.source_pitch;
  params.dstMemoryType = memory_type(calls(), shape.destination);
  params.dstHost = shape.destination;
  params.dstDevice = to_deviceptr(shape.destination);
  params.dstPitch = shape.destination_pitch;
  params.WidthInBytes = shape.width;
  params.Height = shape.height;
  return calls().copy_2d(&params, stream());
}

CUresult Queue::copy_rows(const Copy2dShape& shape) const noexcept {
  auto outcome = cu::k_success;
  for (std::size_t row = 0; row < shape.height && outcome == cu::k_success; ++row) {
    outcome = copy_bytes(to_deviceptr(shape.destination) + row * shape.destination_pitch,
                         to_deviceptr(shape.source) + row * shape.source_pitch, shape.width);
  }
  return outcome;
}

Result<Ref<Event>> Queue::do_copy_2d(const Copy2dShape& shape, WaitList after) {
  const bool contiguous = shape.height == 1 || (shape.width == shape.destination_pitch &&
                                                shape.width == shape.source_pitch);
  if (contiguous) {
    return do_copy(shape.destination, shape.source, shape.width * shape.height, after);
  }
  if (shape.width <= k_max_kernel_width) {
    StridedCopy rows{shape.destination, shape.source, shape.width};
    rows.append({shape.height, shape.destination_pitch, shape.source_pitch});
    if (const auto launch = launch_of(device_, rows)) {
      return submit_launch(*launch, after);
    }
  }
  const auto max_pitch = static_cast<std::size_t>(device_.traits().max_pitch);
  return submit("cuMemcpy2DAsync", after, [=, this] {
    const bool fits = std::max(shape.source_pitch, shape.destination_pitch) <= max_pitch;
    const auto outcome = fits ? copy_pitched(shape) : cu::k_error_INVALID_VALUE;
    return outcome == cu::k_error_INVALID_VALUE ? copy_rows(shape) : outcome;
  });
}

}  // namespace isthmus::cuda
