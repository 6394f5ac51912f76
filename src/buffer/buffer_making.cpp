// SPDX-License-Identifier: Apache-2.0
// Creates buffers and allocates their memory.

#include <utility>

#include "backend/queue.hpp"
#include "buffer/buffer.hpp"
#include "memory/base/driver_serves_thread.hpp"
#include "memory/base/oom_recovery.hpp"
#include "memory/base/provider.hpp"
#include "memory/pool/default_pools.hpp"
#include "memory/records/allocation_creation.hpp"
#include "os/process.hpp"

namespace isthmus {
namespace {

// A warm pool calls no driver, so creating a buffer would not detect the loss of its device. Once
// an error has reported the loss of any device, the driver is queried here. The query does not wait
// for work. A driver that cannot report the amount of free memory does not report a loss here
// either; the first operation reports it.
Error check_not_lost(Device& device) {
  if (thread_cache_only()) {
    // Drivers must not be called here. The caller retries where they may be called.
    return Error::no_memory();
  }
  const auto losses = device_losses.load(std::memory_order_acquire);
  auto memory = device.memory();
  if (!memory && memory.failure().code() == ISTHMUS_ERROR_DEVICE_LOST) {
    return memory.take_error();
  }
  device.note_alive(losses);
  return {};
}

// Allocates once more from the driver if a default pool failed: a pool requests 64 KiB or more from
// the driver, which may have less.
Result<Ref<Allocation>> allocate(Queue& queue, const AllocationRequest& request,
                                 MemoryResource* resource) {
  auto& device = resource != nullptr ? resource->device() : queue.device();
  OomRecovery recovery{device, request, resource};
  auto allocation = recovery.allocate([&] { return create_allocation(queue, request, resource); });
  if (is_out_of_memory(allocation) && no_wait == 0 && &device == &queue.device() &&
      resource != nullptr && DefaultPools::only().has(*resource)) [[unlikely]] {
    auto unpooled = create_allocation(queue, request, nullptr);
    allocation = unpooled ? std::move(unpooled) : std::move(allocation);
  }
  return allocation;
}

}  // namespace

Result<Ref<Buffer>> Buffer::create(Queue& queue, const BufferRequest& request) {
  if (request.nbytes == 0 || queue.closed() || os::is_forked_child() ||
      DriverServesThread::is_active()) {
    return create_from(queue, request, nullptr);
  }
  auto pool = DefaultPools::only().find(queue.context(), queue.device(), request.kind,
                                        DefaultPools::Use::buffers);
  ISTHMUS_TRY(pool);
  return create_from(queue, request, pool->get());
}

Result<Ref<Buffer>> Buffer::create_from(Queue& queue, const BufferRequest& request,
                                        MemoryResource* resource) {
  if (resource != nullptr &&
      (!resource->context().is_same_as(queue.context()) || resource->kind() != request.kind)) {
    return fail(ISTHMUS_ERROR_WRONG_CONTEXT,
                "the memory resource allocates {} memory of {}, but {} memory on a queue of {} was "
                "requested",
                kind_name(resource->kind()), resource->device().properties().filter,
                kind_name(request.kind), queue.device().properties().filter);
  }
  if (queue.closed()) {
    return fail(ISTHMUS_ERROR_CLOSED, "this queue of {} was closed",
                queue.device().properties().filter);
  }
  const AllocationRequest allocation_request{request.kind, request.nbytes, request.alignment};
  const bool is_checked_by_allocation =
      request.nbytes != 0 && (resource == nullptr || resource->is_pool());
  if (auto error = is_checked_by_allocation
                       ? Error{}
                       : queue.context().check(queue.device(), allocation_request)) {
    return error;
  }
  if (resource != nullptr && request.nbytes != 0 && resource->device().may_be_lost()) [[unlikely]] {
    if (auto error = check_not_lost(resource->device())) {
      return error;
    }
  }
  Ref<Allocation> memory;
  if (request.nbytes != 0) {
    auto allocation = allocate(queue, allocation_request, resource);
    if (!allocation) {
      return allocation.take_error();
    }
    memory = *std::move(allocation);
  }
  const auto alignment =
      request.alignment != 0 ? request.alignment : queue.device().properties().base_alignment;
  const auto kind = memory ? memory->facts().kind : request.kind;
  return make_ref<Buffer>(queue, std::move(memory), BufferRequest{request.nbytes, kind, alignment},
                          false);
}

}  // namespace isthmus
