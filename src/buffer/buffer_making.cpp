// SPDX-License-Identifier: Apache-2.0
// Creates buffers and allocates their memory.

#include <chrono>
#include <utility>

#include "backend/queue.hpp"
#include "buffer/buffer.hpp"
#include "memory/allocation_creation.hpp"
#include "memory/default_pools.hpp"
#include "memory/deferred_release.hpp"
#include "memory/driver_serves_thread.hpp"
#include "memory/oom_callbacks.hpp"
#include "memory/other_pools.hpp"
#include "memory/provider.hpp"
#include "os/process.hpp"

namespace isthmus {
namespace {

// The maximum wait for pending releases; a pool has the same default.
constexpr std::chrono::nanoseconds k_max_wait = std::chrono::seconds{1};

// Retries an allocation when a library thread has released as many bytes as requested since
// `returned` was read, or has completed all pending releases of that device and kind. So a program
// that frees memory faster than that thread calls the driver does not fail.
Result<Ref<Allocation>> create_after_release(Queue& queue, const AllocationRequest& request,
                                             MemoryResource* resource, const Device& device,
                                             std::uint64_t returned, Error error) {
  const auto until = os::deadline_after(k_max_wait.count());
  for (bool is_last = false; !is_last;) {
    const auto count_before = release_count();
    const bool has_pending = device.has_pending_release(request.kind);
    const bool may_suffice = device.released_bytes(request.kind) - returned >= request.nbytes;
    if (has_pending && !may_suffice) {
      auto released = wait_for_release(count_before, until);
      ISTHMUS_TRY(released);
      if (*released) {
        continue;
      }
    }
    const auto returned_now = device.released_bytes(request.kind);
    if (std::exchange(returned, returned_now) == returned_now) {
      return error;
    }
    is_last = os::Clock::now() >= until;
    auto allocation = create_allocation(queue, request, resource);
    if (!is_out_of_memory(allocation)) {
      return allocation;
    }
    error = allocation.take_error();
  }
  return error;
}

// A warm pool calls no driver, so creating a buffer would not detect the loss of its device. After
// an error has reported any device loss, the driver is queried here, which does not wait for work.
// A driver that cannot report the amount of free memory does not report a loss here either; the
// first operation reports it.
Error check_not_lost(Device& device) {
  if (thread_cache_only()) {
    // Drivers must not be called here. The caller retries where they may.
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
  const auto alignment =
      request.alignment <= 0 ? std::uint64_t{0} : static_cast<std::uint64_t>(request.alignment);
  const AllocationRequest allocation_request{request.kind, request.nbytes, alignment};
  const bool is_checked_by_allocation =
      request.nbytes != 0 && (resource == nullptr || resource->as_pool());
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
    auto& device = resource != nullptr ? resource->device() : queue.device();
    const auto returned = device.released_bytes(allocation_request.kind);
    const auto refusals = driver_refusals;
    auto allocation = create_allocation(queue, allocation_request, resource);
    if (is_out_of_memory(allocation)) {
      allocation = with_all_pools(
          {device, allocation_request.kind, allocation_request.nbytes,
           resource != nullptr ? resource->as_pool() : nullptr},
          refusals, [&] { return create_allocation(queue, allocation_request, resource); },
          std::move(allocation));
    }
    if (!allocation &&
        may_retry_after_release(allocation.failure(), device, allocation_request, resource)) {
      allocation = create_after_release(queue, allocation_request, resource, device, returned,
                                        allocation.take_error());
    }
    if (!allocation &&
        call_oom_callbacks(allocation.failure(), refusals, device, allocation_request, resource)) {
      allocation = create_allocation(queue, allocation_request, resource);
    }
    if (is_out_of_memory(allocation) && no_wait == 0 && &device == &queue.device() &&
        resource != nullptr && resource->as_pool() != nullptr &&
        DefaultPools::only().has(*resource->as_pool())) {
      // A pool requests 64 KiB or more from the driver, which may have less.
      auto unpooled = create_allocation(queue, allocation_request, nullptr);
      allocation = unpooled ? std::move(unpooled) : std::move(allocation);
    }
    if (!allocation) {
      return allocation.take_error();
    }
    memory = *std::move(allocation);
  }
  const auto effective = alignment != 0 ? alignment : queue.device().properties().base_alignment;
  const auto kind = memory ? memory->facts().kind : request.kind;
  return make_ref<Buffer>(queue, std::move(memory),
                          BufferRequest{request.nbytes, kind, static_cast<std::int64_t>(effective)},
                          false);
}

}  // namespace isthmus
