// SPDX-License-Identifier: Apache-2.0
#include "c/endpoints.hpp"

#include "buffer/foreign.hpp"
#include "core/sizes.hpp"
#include "memory/records/facts.hpp"
#include "memory/records/innermost.hpp"

namespace isthmus::c {
namespace {

// A range relative to an address: `nbytes` bytes that begin `preceding_bytes` before `offset`.
struct ByteSpan {
  std::size_t offset;
  std::size_t preceding_bytes;
  std::size_t nbytes;
};

bool is_in_address_space(const void* start, const ByteSpan& span) noexcept {
  const auto max_offset = UINTPTR_MAX - address(start);
  return span.offset <= max_offset && span.preceding_bytes <= address(start) + span.offset &&
         span.nbytes <= UINTPTR_MAX - (address(start) + span.offset - span.preceding_bytes);
}

Error out_of_bounds_error(const BlockExtent& extent, const void* pointer, const ByteSpan& span) {
  if (span.preceding_bytes != 0) {
    return fail(ISTHMUS_ERROR_OUT_OF_RANGE,
                "{} bytes around {}, {} of them before it, exceed their allocation, {} bytes at {}",
                span.nbytes, pointer, span.preceding_bytes, extent.nbytes,
                static_cast<void*>(extent.base));
  }
  return fail(ISTHMUS_ERROR_OUT_OF_RANGE,
              "{} bytes from {} run past the end of their allocation, {} bytes "
              "at {}",
              span.nbytes, pointer, extent.nbytes, static_cast<void*>(extent.base));
}

Result<Endpoint> endpoint_at(void* start, const ByteSpan& span) {
  if (!is_in_address_space(start, span)) {
    return fail(ISTHMUS_ERROR_OUT_OF_RANGE,
                "{} bytes at offset {} from {} run past the end of the address space", span.nbytes,
                span.offset, start);
  }
  auto* pointer = static_cast<std::byte*>(start) + span.offset;
  Endpoint endpoint{pointer - span.preceding_bytes, nullptr, nullptr};
  if (span.nbytes == 0) {
    return endpoint;
  }
  auto innermost = innermost_at(pointer);
  ISTHMUS_TRY(innermost);
  if (!innermost->memory) {
    return endpoint;
  }
  endpoint.memory = innermost->memory;
  endpoint.preferred = &endpoint.memory->queue();
  const auto& extent = *innermost;
  const auto offset_in_allocation = address(pointer) - address(extent.base);
  if (span.preceding_bytes <= offset_in_allocation && endpoint.memory->facts().is_stated &&
      endpoint.memory->context().takes_host_memory()) {
    // The owner's memory may extend past the adopted part. The operation is ordered after others on
    // that part; the rest is plain host memory.
    return endpoint;
  }
  if (span.preceding_bytes > offset_in_allocation ||
      !lies_within(offset_in_allocation - span.preceding_bytes, span.nbytes, extent.nbytes)) {
    return out_of_bounds_error(extent, pointer, span);
  }
  return endpoint;
}

Error invalid_target_error(const void* pointer, const Queue* queue, DeviceWork work) {
  const char* const remedy =
      work == DeviceWork::fill
          ? "fill it on the host, without a queue, or allocate it for the device"
          : "prefetch and advice need memory that was allocated for a device: allocate it there, "
            "and pass a queue";
  if (queue == nullptr) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "{} is not memory known to the library: {}",
                pointer, remedy);
  }
  return fail(
      ISTHMUS_ERROR_INVALID_ARGUMENT,
      "neither the library nor the driver of {} knows {}, which is plain host memory or was "
      "freed: {}",
      queue->device().properties().filter, pointer, remedy);
}

// Whether the device can fill memory that its driver does not know: any host memory or, if the
// driver has only SVM and cannot be queried, memory that may be another library's SVM.
bool fills_unknown_memory(const Device& device) noexcept {
  return device.reaches_host_memory() || !device.can(ISTHMUS_CAN_USM);
}

// Records the memory for this call only, so that its ordering and access rules are those of other
// device memory. Records the driver's whole allocation if its size is known, since other calls may
// use other parts at the same time.
Result<Ref<Allocation>> record_foreign(Queue& queue, const Endpoint& endpoint, std::size_t nbytes) {
  auto facts = facts_of(queue.context(), endpoint.pointer);
  if (facts.nbytes == 0) {
    facts.base = endpoint.pointer;
    facts.nbytes = nbytes;
  }
  return Allocation::adopt(queue, {facts.base, facts.nbytes, 1, ISTHMUS_KIND_DEVICE, true}, Owner{},
                           Ref<Allocation>{});
}

}  // namespace

Result<Endpoint> target_of(Endpoint endpoint, std::size_t nbytes, Queue* queue, DeviceWork work) {
  if (endpoint.memory || nbytes == 0) [[likely]] {
    return endpoint;
  }
  const bool is_fill = work == DeviceWork::fill;
  if (queue == nullptr) {
    return is_fill ? Result<Endpoint>{std::move(endpoint)}
                   : invalid_target_error(endpoint.pointer, queue, work);
  }
  auto kind = check_foreign(*queue, {endpoint.pointer, nbytes});
  if (!kind && kind.failure().code() == ISTHMUS_ERROR_WRONG_CONTEXT &&
      facts_of(queue->context(), endpoint.pointer).kind == ISTHMUS_KIND_UNKNOWN) {
    return is_fill && fills_unknown_memory(queue->device())
               ? Result<Endpoint>{std::move(endpoint)}
               : invalid_target_error(endpoint.pointer, queue, work);
  }
  ISTHMUS_TRY(kind);
  if (*kind == ISTHMUS_KIND_DEVICE) {  // the host cannot access it
    auto memory = record_foreign(*queue, endpoint, nbytes);
    ISTHMUS_TRY(memory);
    endpoint.memory = *std::move(memory);
    endpoint.preferred = queue;
  }
  return endpoint;
}

Result<Endpoint> endpoint_around(const isthmus_endpoint_t& raw, std::size_t preceding_bytes,
                                 std::size_t nbytes, bool writes) {
  if (raw.buffer != nullptr) {
    if (preceding_bytes > raw.offset) {
      return fail(ISTHMUS_ERROR_OUT_OF_RANGE,
                  "{} bytes before offset {} lie before the beginning of their buffer",
                  preceding_bytes, raw.offset);
    }
    return object(raw.buffer)->at(raw.offset - preceding_bytes, nbytes, writes);
  }
  if (raw.pointer == nullptr && nbytes != 0) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "an endpoint has neither a buffer nor a pointer: set one of them");
  }
  if (raw.pointer == nullptr) {
    return Endpoint{};  // no offset is added to a null pointer
  }
  return endpoint_at(raw.pointer, {raw.offset, preceding_bytes, nbytes});
}

Result<Endpoint> endpoint_of(const isthmus_endpoint_t& raw, std::size_t nbytes, bool writes) {
  return endpoint_around(raw, 0, nbytes, writes);
}

}  // namespace isthmus::c
