// SPDX-License-Identifier: Apache-2.0
// Copies and fills.

#include <cstring>

#include "backend/copy_division.hpp"
#include "backend/opencl/pending_pattern.hpp"
#include "backend/opencl/queue.hpp"
#include "core/share_out.hpp"
#include "core/sizes.hpp"

namespace isthmus::opencl {
namespace {

// Rows of at least this size are copied by one command each, which several threads of the driver
// execute. Shorter rows take less time to copy than to submit (2 to 30 us per command): 256 rows of
// 16 KiB take 0.2 ms in one native kernel and 3 to 8 ms as commands.
constexpr std::size_t k_min_command_bytes = std::size_t{1} << 20;

// Native kernels run in the queue's order on a thread of the driver, if the device's memory is the
// host's. The driver copies their arguments at submission.
void copy_rows_natively(void* arguments) {
  isthmus::copy_rows(*static_cast<const Copy2dShape*>(arguments));
}

// The header of a list of ranges; the ranges follow it in memory.
struct NativeRanges {
  void* destination;
  const void* source;
  std::size_t count;
};
static_assert(sizeof(NativeRanges) % alignof(CopyRange) == 0);

void copy_ranges_natively(void* arguments) {
  const auto& header = *static_cast<const NativeRanges*>(arguments);
  isthmus::copy_ranges(
      {header.destination,
       header.source,
       {reinterpret_cast<const CopyRange*>(static_cast<const NativeRanges*>(arguments) + 1),
        header.count}});
}

std::vector<std::byte> native_arguments(const RangedCopy& copy) {
  std::vector<std::byte> arguments(sizeof(NativeRanges) + copy.ranges.size_bytes());
  const NativeRanges header{copy.destination, copy.source, copy.ranges.size()};
  std::memcpy(arguments.data(), &header, sizeof header);
  std::memcpy(arguments.data() + sizeof header, copy.ranges.data(), copy.ranges.size_bytes());
  return arguments;
}

struct NativeFill {
  void* destination;
  std::size_t nbytes;
  FillPattern pattern;
};

void fill_natively(void* arguments) {
  const auto& fill = *static_cast<const NativeFill*>(arguments);
  fill_bytes(fill.destination, fill.pattern, fill.nbytes);
}

}  // namespace

cl_int Queue::enqueue_copy(void* destination, const void* source, std::size_t nbytes,
                           const CommandEvents& events) const noexcept {
  const auto copy = device_traits().usm ? calls().copy_usm : calls().copy_svm;
  return copy(handle(), CL_FALSE, destination, source, nbytes, events.wait_count, events.waits,
              events.event);
}

Result<Ref<Event>> Queue::do_copy(void* destination, const void* source, std::size_t nbytes,
                                  WaitList after) {
  if (nbytes >= k_large_bytes && device_traits().native_kernels) {
    // Intel's CPU runtime would copy through the caches, which takes 1.3 to 2 times as long.
    Copy2dShape row{destination, nbytes, source, nbytes, nbytes, 1};
    return run_native(copy_rows_natively, &row, sizeof row, after);
  }
  const CopyDivision chunks{destination, nbytes};
  return submitter_.submit(copy_name(), chunks.count(), after,
                           [&, this](std::size_t index, const CommandEvents& events) {
                             const auto offset = chunks.begin(index);
                             return enqueue_copy(advance(destination, offset),
                                                 advance(source, offset), chunks.size(index),
                                                 events);
                           });
}

Result<Ref<Event>> Queue::copy_rows(const Copy2dShape& shape, WaitList after) {
  return submitter_.submit(
      copy_name(), shape.height, after, [&, this](std::size_t row, const CommandEvents& events) {
        return enqueue_copy(advance(shape.destination, row * shape.destination_pitch),
                            advance(shape.source, row * shape.source_pitch), shape.width, events);
      });
}

Result<Ref<Event>> Queue::do_copy_2d(const Copy2dShape& shape, WaitList after) {
  const bool contiguous = shape.height == 1 || (shape.width == shape.destination_pitch &&
                                                shape.width == shape.source_pitch);
  if (contiguous) {
    return do_copy(shape.destination, shape.source, shape.width * shape.height, after);
  }
  if (device_traits().native_kernels && shape.width < k_min_command_bytes) {
    auto arguments = shape;
    return run_native(copy_rows_natively, &arguments, sizeof arguments, after);
  }
  return copy_rows(shape, after);
}

Result<Ref<Event>> Queue::do_copy_ranges(const RangedCopy& copy, WaitList after) {
  if (device_traits().native_kernels) {
    auto arguments = native_arguments(copy);
    return run_native(copy_ranges_natively, arguments.data(), arguments.size(), after);
  }
  return submitter_.submit(copy_name(), copy.ranges.size(), after,
                           [&, this](std::size_t index, const CommandEvents& events) {
                             const auto& range = copy.ranges[index];
                             return enqueue_copy(
                                 advance(copy.destination, range.destination_offset),
                                 advance(copy.source, range.source_offset), range.nbytes, events);
                           });
}

Result<Ref<Event>> Queue::do_fill(void* destination, const FillPattern& pattern, std::size_t nbytes,
                                  WaitList after) {
  // OpenCL requires the destination to be aligned to the pattern.
  if (address(destination) % pattern.nbytes != 0 && device_traits().native_kernels) {
    NativeFill arguments{destination, nbytes, pattern};
    return run_native(fill_natively, &arguments, sizeof arguments, after);
  }
  if (address(destination) % pattern.nbytes != 0) {
    return fail(ISTHMUS_ERROR_UNSUPPORTED,
                "{} fills with patterns of {} bytes only at addresses that are a multiple of that, "
                "not at {}: use such an address, or a pattern of fewer bytes",
                device().properties().filter, pattern.nbytes, destination);
  }
  return device_traits().usm ? fill_usm(destination, pattern, nbytes, after)
                             : fill_svm(destination, pattern, nbytes, after);
}

Result<Ref<Event>> Queue::fill_usm(void* destination, const FillPattern& pattern,
                                   std::size_t nbytes, WaitList after) {
  return submitter_.submit(
      "clEnqueueMemFillINTEL", 1, after, [&, this](std::size_t, const CommandEvents& events) {
        return calls().fill_usm(handle(), destination, pattern.bytes, pattern.nbytes, nbytes,
                                events.wait_count, events.waits, events.event);
      });
}

Result<Ref<Event>> Queue::fill_svm(void* destination, const FillPattern& pattern,
                                   std::size_t nbytes, WaitList after) {
  auto pattern_copy = std::make_unique<FillPattern>(pattern);
  return submitter_.submit(
      "clEnqueueSVMMemFill", 1, after, [&, this](std::size_t, const CommandEvents& events) {
        const auto outcome =
            calls().fill_svm(handle(), destination, pattern_copy->bytes, pattern_copy->nbytes,
                             nbytes, events.wait_count, events.waits, events.event);
        if (outcome == CL_SUCCESS) {
          keep_until_ended(calls(), *events.event, std::move(pattern_copy));
        }
        return outcome;
      });
}

Result<Ref<Event>> Queue::run_native(NativeFunction function, void* arguments, std::size_t nbytes,
                                     WaitList after) {
  return submitter_.submit(
      "clEnqueueNativeKernel", 1, after, [&, this](std::size_t, const CommandEvents& events) {
        return calls().enqueue_native(handle(), function, arguments, nbytes, 0, nullptr, nullptr,
                                      events.wait_count, events.waits, events.event);
      });
}

}  // namespace isthmus::opencl
