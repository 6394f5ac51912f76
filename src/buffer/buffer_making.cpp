// SPDX-License-Identifier: Apache-2.0
// Obtains the memory of a new buffer.

#include <chrono>
#include <utility>

#include "backend/queue.hpp"
#include "buffer/buffer.hpp"
#include "memory/default_pools.hpp"
#include "memory/deferred_release.hpp"
#include "memory/oom_callbacks.hpp"
#include "memory/other_pools.hpp"
#include "memory/provider.hpp"
#include "os/process.hpp"

namespace isthmus {
namespace {

// The default of a pool.
constexpr std::chrono::nanoseconds k_longest_wait = std::chrono::seconds{1};

// Retries when a library thread has returned as much as is requested since `returned`, or
// everything that it had to return there. A program that frees memory faster than that thread calls
// the driver is thus not refused.
Result<Ref<Allocation>> create_late(Queue& queue, const AllocationRequest& wanted,
                                    MemoryResource* resource, const Device& device,
                                    std::uint64_t returned, Error refusal) {
  const auto until = os::deadline_after(k_longest_wait.count());
  for (bool is_last = false; !is_last;) {
    const auto seen = reclaims();
    const bool more_is_late = device.has_late(wanted.kind);
    const bool may_suffice = device.returned_bytes(wanted.kind) - returned >= wanted.nbytes;
    if (more_is_late && !may_suffice) {
      auto came = wait_for_reclaim(seen, until);
      ISTHMUS_TRY(came);
      if (*came) {
        continue;
      }
    }
    const auto now = device.returned_bytes(wanted.kind);
    if (std::exchange(returned, now) == now) {
      return refusal;
    }
    is_last = os::Clock::now() >= until;
    auto made = Allocation::create(queue, wanted, resource);
    if (made || made.failure().code() != ISTHMUS_ERROR_OUT_OF_MEMORY) {
      return made;
    }
    refusal = made.take_error();
  }
  return refusal;
}

// A warm pool calls no driver, so a new buffer would not notice the loss of its device. Once an
// error has reported any device loss, the driver is queried, which waits for no work. A driver that
// does not report how much memory is free reports no loss here either; the first operation does.
Error refuse_if_lost(Device& device) {
  if (only_at_hand()) {
    return Error::no_memory();  // no driver may be called: the caller retries where one may
  }
  const auto losses = device_losses.load(std::memory_order_acquire);
  auto seen = device.memory();
  if (!seen && seen.failure().code() == ISTHMUS_ERROR_DEVICE_LOST) {
    return seen.take_error();
  }
  device.note_alive(losses);
  return {};
}

}  // namespace

Result<Ref<Buffer>> Buffer::create(Queue& queue, const BufferRequest& request) {
  if (request.nbytes == 0 || queue.closed() || os::is_forked_child() ||
      DriverServesThread::is_on()) {
    return create_from(queue, request, nullptr);
  }
  auto from = DefaultPools::only().find(queue.context(), queue.device(), request.kind,
                                        DefaultPools::Use::buffers);
  ISTHMUS_TRY(from);
  return create_from(queue, request, from->get());
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
  const AllocationRequest wanted{request.kind, request.nbytes, alignment};
  const bool is_checked_below = request.nbytes != 0 && (resource == nullptr || resource->as_pool());
  if (auto bad = is_checked_below ? Error{} : queue.context().check(queue.device(), wanted)) {
    return bad;
  }
  if (resource != nullptr && request.nbytes != 0 && resource->device().may_be_lost()) [[unlikely]] {
    if (auto lost = refuse_if_lost(resource->device())) {
      return lost;
    }
  }
  Ref<Allocation> memory;
  if (request.nbytes != 0) {
    auto& where = resource != nullptr ? resource->device() : queue.device();
    const auto returned = where.returned_bytes(wanted.kind);
    const auto refusals = driver_refusals;
    auto made = Allocation::create(queue, wanted, resource);
    if (is_short(made)) {
      made = with_all_pools(
          {where, wanted.kind, wanted.nbytes, resource != nullptr ? resource->as_pool() : nullptr},
          refusals, [&] { return Allocation::create(queue, wanted, resource); }, std::move(made));
    }
    if (!made && may_be_had_later(made.failure(), where, wanted, resource)) {
      made = create_late(queue, wanted, resource, where, returned, made.take_error());
    }
    if (!made && reclaimed_for(made.failure(), refusals, where, wanted, resource)) {
      made = Allocation::create(queue, wanted, resource);
    }
    if (is_short(made) && no_wait == 0 && &where == &queue.device() && resource != nullptr &&
        resource->as_pool() != nullptr && DefaultPools::only().has(*resource->as_pool())) {
      // A pool obtains pieces of 64 KiB or more; the driver may have less than that.
      auto unpooled = Allocation::create(queue, wanted, nullptr);
      made = unpooled ? std::move(unpooled) : std::move(made);
    }
    if (!made) {
      return made.take_error();
    }
    memory = *std::move(made);
  }
  const auto effective = alignment != 0 ? alignment : queue.device().properties().base_alignment;
  const auto kind = memory ? memory->what().kind : request.kind;
  return make_ref<Buffer>(queue, std::move(memory),
                          BufferRequest{request.nbytes, kind, static_cast<std::int64_t>(effective)},
                          false);
}

}  // namespace isthmus
