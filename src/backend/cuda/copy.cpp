// SPDX-License-Identifier: Apache-2.0
// Copies.
//
// The driver derives the direction of a copy from the addresses. A copy from or to plain host
// memory goes through a staging buffer of the driver. The source may change once the call returns,
// but the call returns only when that much has been copied, so it may block the submitting thread.

#include <algorithm>

#include "backend/cuda/pointer.hpp"
#include "backend/cuda/submit.hpp"
#include "core/sizes.hpp"

namespace isthmus::cuda {
namespace {

// From these sizes a copy of plain host memory takes longer with the driver's staging than with
// ours. To the device 256 KiB took 30 us against 35 and 1 MiB 100 against 92; from the device 1 MiB
// took 98 against 116 and 4 MiB 334 against 232 (H100).
constexpr std::size_t k_staged_to_device = std::size_t{512} << 10;
constexpr std::size_t k_staged_from_device = std::size_t{2} << 20;
// Rows up to this width are copied faster by a kernel: 4 MiB in rows of 64 bytes in 117 us to the
// device and 15 inside it against the driver's 137 and 25, in rows of 4 bytes in 346 and 17 against
// 1,826 and 135. To the device rows of 128 took 109 against 107 (H100).
constexpr std::size_t k_narrow = 64;

Number memory_type(const Api& calls, const void* pointer) noexcept {
  return ask_pointer(calls, pointer).kind == ISTHMUS_KIND_UNKNOWN ? cu::k_memory_host
                                                                  : cu::k_memory_unified;
}

}  // namespace

bool Device::is_hosts_own(const void* pointer) const noexcept {
  const MadeCurrent here{calls_, known_primary()};
  return ask_pointer(calls_, pointer).kind == ISTHMUS_KIND_UNKNOWN;
}

// Also true for memory of which only a part is registered.
bool Device::copies_better_staged(const void* first, const void* last, std::size_t nbytes,
                                  bool to_device) const noexcept {
  return nbytes >= (to_device ? k_staged_to_device : k_staged_from_device) &&
         (is_hosts_own(first) || is_hosts_own(last));
}

namespace {

// The bytes from `at` that lie in one registered range of the driver.
std::size_t piece_at(const Api& calls, Place at, std::size_t nbytes) noexcept {
  const auto known = ask_pointer(calls, pointer_to(at));
  return known.kind == ISTHMUS_KIND_HOST
             ? std::min<std::size_t>(nbytes, place_of(known.base) + known.nbytes - at)
             : nbytes;
}

}  // namespace

// The driver refuses a copy that begins in registered memory and goes beyond it, whichever library
// registered it. It accepts one that begins before it. Refused copies are divided at the
// boundaries.
Code Queue::copy_bytes(Place destination, Place source, std::size_t nbytes) const noexcept {
  auto outcome = calls().copy(destination, source, nbytes, stream());
  if (outcome != cu::k_error_INVALID_VALUE) {
    return outcome;
  }
  outcome = cu::k_success;
  for (std::size_t done = 0; done < nbytes && outcome == cu::k_success;) {
    const auto piece = std::min(piece_at(calls(), destination + done, nbytes - done),
                                piece_at(calls(), source + done, nbytes - done));
    outcome = calls().copy(destination + done, source + done, piece, stream());
    done += piece;
  }
  return outcome;
}

Result<Ref<Event>> Queue::do_copy(void* destination, const void* source, std::size_t nbytes,
                                  WaitList after) {
  return submit("cuMemcpyAsync", after,
                [=, this] { return copy_bytes(place_of(destination), place_of(source), nbytes); });
}

Code Queue::copy_pitched(const Copy2dShape& shape) const noexcept {
  Copy2dParameters how;
  how.source_type = memory_type(calls(), shape.source);
  how.source_host = shape.source;
  how.source = place_of(shape.source);
  how.source_pitch = shape.source_pitch;
  how.destination_type = memory_type(calls(), shape.destination);
  how.destination_host = shape.destination;
  how.destination = place_of(shape.destination);
  how.destination_pitch = shape.destination_pitch;
  how.width = shape.width;
  how.height = shape.height;
  return calls().copy_2d(&how, stream());
}

Code Queue::copy_rows(const Copy2dShape& shape) const noexcept {
  auto outcome = cu::k_success;
  for (std::size_t row = 0; row < shape.height && outcome == cu::k_success; ++row) {
    outcome = copy_bytes(place_of(shape.destination) + row * shape.destination_pitch,
                         place_of(shape.source) + row * shape.source_pitch, shape.width);
  }
  return outcome;
}

Result<Ref<Event>> Queue::do_copy_2d(const Copy2dShape& shape, WaitList after) {
  const bool contiguous = shape.height == 1 || (shape.width == shape.destination_pitch &&
                                                shape.width == shape.source_pitch);
  if (contiguous) {
    return do_copy(shape.destination, shape.source, shape.width * shape.height, after);
  }
  if (shape.width <= k_narrow) {
    StridedCopy rows{shape.destination, shape.source, shape.width};
    rows.append({shape.height, shape.destination_pitch, shape.source_pitch});
    if (const auto launch = launch_of(device_, rows)) {
      return put_launch(*launch, after);
    }
  }
  const auto widest = static_cast<std::size_t>(device_.traits().max_pitch);
  return submit("cuMemcpy2DAsync", after, [=, this] {
    const bool fits = std::max(shape.source_pitch, shape.destination_pitch) <= widest;
    const auto outcome = fits ? copy_pitched(shape) : cu::k_error_INVALID_VALUE;
    return outcome == cu::k_error_INVALID_VALUE ? copy_rows(shape) : outcome;
  });
}

}  // namespace isthmus::cuda
