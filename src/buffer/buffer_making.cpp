// SPDX-License-Identifier: Apache-2.0
// Obtains the memory of a new buffer.

#include <chrono>
#include <utility>

#include "backend/queue.hpp"
#include "buffer/buffer.hpp"
#include "memory/default_pools.hpp"
#include "memory/other_pools.hpp"
#include "memory/provider.hpp"
#include "memory/reaper.hpp"
#include "memory/reclaimers.hpp"
#include "os/process.hpp"

namespace isthmus {
namespace {

// The default of a pool.
constexpr std::chrono::nanoseconds k_longest_wait = std::chrono::seconds{1};

// Retries when a library thread has returned as much as is requested since `returned`, or
// everything that it had to return there. A program that frees memory faster than that thread calls
// the driver is thus not refused.
result<ref<allocation>> create_late(queue& on, const allocation_request& wanted,
                                    memory_resource* from, const device& where,
                                    std::uint64_t returned, error refusal) {
  const auto until = os::deadline_after(k_longest_wait.count());
  for (bool is_last = false; !is_last;) {
    const auto seen = reclaims();
    const bool more_is_late = where.has_late(wanted.kind);
    const bool may_suffice = where.returned_bytes(wanted.kind) - returned >= wanted.nbytes;
    if (more_is_late && !may_suffice) {
      auto came = wait_for_reclaim(seen, until);
      ISTHMUS_TRY(came);
      if (*came) {
        continue;
      }
    }
    const auto now = where.returned_bytes(wanted.kind);
    if (std::exchange(returned, now) == now) {
      return refusal;
    }
    is_last = os::clock::now() >= until;
    auto made = allocation::create(on, wanted, from);
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
error refuse_if_lost(device& where) {
  if (only_at_hand()) {
    return error::no_memory();  // no driver may be called: the caller retries where one may
  }
  const auto losses = device_losses.load(std::memory_order_acquire);
  auto seen = where.memory();
  if (!seen && seen.failure().code() == ISTHMUS_ERROR_DEVICE_LOST) {
    return seen.take_error();
  }
  where.note_alive(losses);
  return {};
}

}  // namespace

result<ref<buffer>> buffer::create(queue& on, const buffer_request& request) {
  if (request.nbytes == 0 || on.closed() || os::is_forked_child() ||
      driver_serves_thread::is_on()) {
    return create_from(on, request, nullptr);
  }
  auto from =
      default_pools::only().find(on.home(), on.where(), request.kind, default_pools::use::buffers);
  ISTHMUS_TRY(from);
  return create_from(on, request, from->get());
}

result<ref<buffer>> buffer::create_from(queue& on, const buffer_request& request,
                                        memory_resource* from) {
  if (from != nullptr && (!from->home().is_same_as(on.home()) || from->kind() != request.kind)) {
    return fail(ISTHMUS_ERROR_WRONG_CONTEXT,
                "the memory resource allocates {} memory of {}, but {} memory on a queue of {} was "
                "requested",
                kind_name(from->kind()), from->where().properties().filter, kind_name(request.kind),
                on.where().properties().filter);
  }
  if (on.closed()) {
    return fail(ISTHMUS_ERROR_CLOSED, "this queue of {} was closed",
                on.where().properties().filter);
  }
  const auto alignment =
      request.alignment <= 0 ? std::uint64_t{0} : static_cast<std::uint64_t>(request.alignment);
  const allocation_request wanted{request.kind, request.nbytes, alignment};
  const bool is_checked_below = request.nbytes != 0 && (from == nullptr || from->as_pool());
  if (auto bad = is_checked_below ? error{} : on.home().check(on.where(), wanted)) {
    return bad;
  }
  if (from != nullptr && request.nbytes != 0 && from->where().may_be_lost()) [[unlikely]] {
    if (auto lost = refuse_if_lost(from->where())) {
      return lost;
    }
  }
  ref<allocation> memory;
  if (request.nbytes != 0) {
    auto& where = from != nullptr ? from->where() : on.where();
    const auto returned = where.returned_bytes(wanted.kind);
    const auto refusals = driver_refusals;
    auto made = allocation::create(on, wanted, from);
    if (is_short(made)) {
      made = with_all_pools(
          {where, wanted.kind, wanted.nbytes, from != nullptr ? from->as_pool() : nullptr},
          refusals, [&] { return allocation::create(on, wanted, from); }, std::move(made));
    }
    if (!made && may_be_had_later(made.failure(), where, wanted, from)) {
      made = create_late(on, wanted, from, where, returned, made.take_error());
    }
    if (!made && reclaimed_for(made.failure(), refusals, where, wanted, from)) {
      made = allocation::create(on, wanted, from);
    }
    if (is_short(made) && no_wait == 0 && &where == &on.where() && from != nullptr &&
        from->as_pool() != nullptr && default_pools::only().has(*from->as_pool())) {
      // A pool obtains pieces of 64 KiB or more; the driver may have less than that.
      auto unpooled = allocation::create(on, wanted, nullptr);
      made = unpooled ? std::move(unpooled) : std::move(made);
    }
    if (!made) {
      return made.take_error();
    }
    memory = *std::move(made);
  }
  const auto effective = alignment != 0 ? alignment : on.where().properties().base_alignment;
  const auto kind = memory ? memory->what().kind : request.kind;
  return make_ref<buffer>(
      on, std::move(memory),
      buffer_request{request.nbytes, kind, static_cast<std::int64_t>(effective)}, false);
}

}  // namespace isthmus
