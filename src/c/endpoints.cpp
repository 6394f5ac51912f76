// SPDX-License-Identifier: Apache-2.0
#include "c/endpoints.hpp"

#include "buffer/foreign.hpp"
#include "core/sizes.hpp"
#include "memory/facts.hpp"
#include "memory/innermost.hpp"

namespace isthmus::c {
namespace {

// A range relative to an address: `nbytes` that begin `before` bytes before `offset`.
struct BytesAt {
  std::size_t offset;
  std::size_t before;
  std::size_t nbytes;
};

bool is_in_address_space(const void* start, const BytesAt& block) noexcept {
  const auto max_offset = UINTPTR_MAX - address(start);
  return block.offset <= max_offset && block.before <= address(start) + block.offset &&
         block.nbytes <= UINTPTR_MAX - (address(start) + block.offset - block.before);
}

Error out_of_bounds_error(const BlockExtent& extent, const void* pointer, const BytesAt& block) {
  if (block.before != 0) {
    return fail(ISTHMUS_ERROR_OUT_OF_RANGE,
                "{} bytes around {}, {} of them before it, exceed their allocation, {} bytes at {}",
                block.nbytes, pointer, block.before, extent.nbytes,
                static_cast<void*>(extent.base));
  }
  return fail(ISTHMUS_ERROR_OUT_OF_RANGE,
              "{} bytes from {} run past the end of their allocation, {} bytes "
              "at {}",
              block.nbytes, pointer, extent.nbytes, static_cast<void*>(extent.base));
}

Result<Endpoint> endpoint_at(void* start, const BytesAt& block) {
  if (!is_in_address_space(start, block)) {
    return fail(ISTHMUS_ERROR_OUT_OF_RANGE,
                "{} bytes at offset {} from {} run past the end of the address space", block.nbytes,
                block.offset, start);
  }
  auto* pointer = static_cast<std::byte*>(start) + block.offset;
  Endpoint endpoint{pointer - block.before, nullptr, nullptr};
  if (block.nbytes == 0) {
    return endpoint;
  }
  auto found = innermost_at(pointer);
  ISTHMUS_TRY(found);
  if (!found->memory) {
    return endpoint;
  }
  endpoint.memory = found->memory;
  endpoint.preferred = &endpoint.memory->queue();
  const auto& extent = *found;
  const auto inside = address(pointer) - address(extent.base);
  if (block.before <= inside && endpoint.memory->facts().is_stated &&
      endpoint.memory->context().takes_host_memory()) {
    return endpoint;  // ordered after operations on the known memory; the rest is plain host memory
  }
  if (block.before > inside || !lies_within(inside - block.before, block.nbytes, extent.nbytes)) {
    return out_of_bounds_error(extent, pointer, block);
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

Result<Endpoint> endpoint_around(const isthmus_endpoint_t& raw, std::size_t before,
                                 std::size_t nbytes, bool writes) {
  if (raw.buffer != nullptr) {
    if (before > raw.offset) {
      return fail(ISTHMUS_ERROR_OUT_OF_RANGE,
                  "{} bytes before offset {} lie before the beginning of their buffer", before,
                  raw.offset);
    }
    return object(raw.buffer)->at(raw.offset - before, nbytes, writes);
  }
  if (raw.pointer == nullptr && nbytes != 0) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "an endpoint has neither a buffer nor a pointer");
  }
  if (raw.pointer == nullptr) {
    return Endpoint{};  // no offset is added to a null pointer
  }
  return endpoint_at(raw.pointer, {raw.offset, before, nbytes});
}

Result<Endpoint> endpoint_of(const isthmus_endpoint_t& raw, std::size_t nbytes, bool writes) {
  return endpoint_around(raw, 0, nbytes, writes);
}

}  // namespace isthmus::c
