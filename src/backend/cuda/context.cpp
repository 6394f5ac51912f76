// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/context.hpp"

#include <algorithm>

#include "backend/cuda/current.hpp"
#include "backend/cuda/pointer.hpp"
#include "backend/cuda/queue.hpp"
#include "core/sizes.hpp"
#include "core/undo.hpp"
#include "os/process.hpp"

namespace isthmus::cuda {
namespace {

code call_for(const api& calls, const allocation_request& request, void*& made) noexcept {
  const auto nbytes = request.nbytes;
  place at = 0;
  switch (request.kind) {
    case ISTHMUS_KIND_HOST:
      return calls.allocate_host(&made, nbytes,
                                 cu::k_host_portable | cu::k_host_mapped |
                                     (request.write_combined ? cu::k_host_write_combined : 0));
    case ISTHMUS_KIND_SHARED: {
      const auto outcome = calls.allocate_managed(&at, nbytes, cu::k_attach_global);
      made = pointer_to(at);
      return outcome;
    }
    default: {
      const auto outcome = calls.allocate_device(&at, nbytes);
      made = pointer_to(at);
      return outcome;
    }
  }
}

error not_allocated(const device& where, usm_kind kind, std::size_t nbytes, code outcome) {
  if (outcome != cu::k_error_OUT_OF_MEMORY) {
    return call_failed("an allocation", outcome);
  }
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  static_cast<void>(where.calls().memory_info(&free_bytes, &total_bytes));
  return fail(ISTHMUS_ERROR_OUT_OF_MEMORY,
              "{} did not allocate {} of {} memory: {} ({}); it has {} free",
              where.properties().filter, describe_bytes(nbytes), kind_name(kind),
              code_name(outcome), outcome, describe_bytes(free_bytes));
}

error more_than_free(const device& where, std::size_t nbytes, std::size_t free_bytes) {
  return fail(ISTHMUS_ERROR_OUT_OF_MEMORY,
              "{} has {} free, and other shared memory counts against it: {} of shared memory "
              "would exceed it, which can hang the device; use the host kind, or allocate less",
              where.properties().filter, describe_bytes(free_bytes), describe_bytes(nbytes));
}

}  // namespace

context::context(platform& home, std::vector<isthmus::device*> members, isthmus::platform* whole)
    : isthmus::context{std::move(members), whole}, driver_{home} {
  for (auto* member : devices()) {
    const auto& where = static_cast<device&>(*member);
    movable_.push_back({chunks::of_device(where), chunks::of_host(where, devices())});
  }
}

// Preferably a device whose context exists: creating one takes device memory.
device& context::any() const noexcept {
  const auto known = std::find_if(devices().begin(), devices().end(), [](const auto* member) {
    return static_cast<const device*>(member)->known_primary() != nullptr;
  });
  return static_cast<device&>(known != devices().end() ? **known : *devices().front());
}

void* context::native() const noexcept {
  auto primary = static_cast<device&>(*devices().front()).primary();
  return primary ? *primary : nullptr;
}

pointer_facts context::query(const void* pointer) noexcept {
  auto primary = any().primary();
  if (!primary) {
    return {};
  }
  const made_current here{driver_.calls(), *primary};
  const auto told = ask_pointer(driver_.calls(), pointer);
  if (told.kind == ISTHMUS_KIND_UNKNOWN) {
    return {};
  }
  return {told.kind, told.base, told.nbytes,
          told.kind == ISTHMUS_KIND_HOST ? nullptr : driver_.find(told.where)};
}

chunk_source* context::chunks(isthmus::device& where, usm_kind kind) noexcept {
  const auto found = std::find(devices().begin(), devices().end(), &where);
  if (found == devices().end()) {
    return nullptr;
  }
  const auto& all = movable_.at(static_cast<std::size_t>(found - devices().begin()));
  switch (kind) {
    case ISTHMUS_KIND_DEVICE: return all.of_device.get();
    case ISTHMUS_KIND_HOST:
      return all.of_host != nullptr && all.of_host->works() ? all.of_host.get() : nullptr;
    default: return nullptr;
  }
}

// Pre: the device's context is current.
result<void*> context::obtain(device& where, const allocation_request& request) {
  const auto& calls = where.calls();
  const auto kind = request.kind;
  const auto nbytes = request.nbytes;
  if (kind == ISTHMUS_KIND_SHARED) {
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    if (const auto outcome = calls.memory_info(&free_bytes, &total_bytes);
        outcome != cu::k_success) {
      return call_failed("cuMemGetInfo", outcome);
    }
    if (!where.claim_managed(nbytes, free_bytes)) {
      return more_than_free(where, nbytes, free_bytes);
    }
  }
  void* made = nullptr;
  if (const auto outcome = call_for(calls, request, made); outcome != cu::k_success) {
    if (kind == ISTHMUS_KIND_SHARED) {
      where.unclaim_managed(nbytes);
    }
    return not_allocated(where, kind, nbytes, outcome);
  }
  return made;
}

result<void*> context::obtain_larger(device& where, const allocation_request& request) {
  const auto nbytes = request.nbytes + request.alignment - 1;
  auto start = obtain(where, {request.kind, nbytes, 0, request.write_combined});
  ISTHMUS_TRY(start);
  auto* const aligned = static_cast<std::byte*>(*start) +
                        (round_up(address(*start), request.alignment) - address(*start));
  try {
    const std::lock_guard hold{larger_lock_};
    larger_.emplace(aligned, whole_block{*start, nbytes});
  } catch (const std::bad_alloc&) {
    give_back(where, *start, request.kind, nbytes);
    return error::no_memory();
  }
  larger_count_.fetch_add(1, std::memory_order_relaxed);
  return aligned;
}

result<void*> context::do_allocate(isthmus::device& where, const allocation_request& request) {
  auto& home = static_cast<device&>(where);
  auto primary = home.primary();
  ISTHMUS_TRY(primary);
  const made_current here{home.calls(), *primary};
  if (here.outcome() != cu::k_success) {
    return call_failed("cuCtxSetCurrent", here.outcome());
  }
  auto made = obtain(home, request);
  if (!made || address(*made) % request.alignment == 0) {
    return made;
  }
  give_back(home, *made, request.kind, request.nbytes);
  return obtain_larger(home, request);
}

// Pre: the device's context is current.
void context::give_back(device& where, void* pointer, usm_kind kind, std::size_t nbytes) noexcept {
  if (kind == ISTHMUS_KIND_HOST) {
    where.calls().free_host(pointer);
    return;
  }
  where.calls().free_device(place_of(pointer));
  if (kind == ISTHMUS_KIND_SHARED) {
    where.unclaim_managed(nbytes);
  }
}

void context::do_deallocate(void* pointer, usm_kind kind, std::size_t nbytes) noexcept {
  auto& known = any();
  const made_current one{driver_.calls(), known.known_primary()};
  const auto told = ask_pointer(driver_.calls(), pointer);
  auto* const home = kind == ISTHMUS_KIND_HOST ? nullptr : driver_.find(told.where);
  auto& where = home != nullptr ? *home : known;
  if (larger_count_.load(std::memory_order_relaxed) != 0) {
    const std::lock_guard hold{larger_lock_};
    if (auto larger = larger_.extract(pointer)) {
      pointer = larger.mapped().start;
      nbytes = larger.mapped().nbytes;
      larger_count_.fetch_sub(1, std::memory_order_relaxed);
    }
  }
  const made_current here{driver_.calls(), where.known_primary()};
  give_back(where, pointer, kind, nbytes);
}

result<ref<isthmus::queue>> context::make_queue(isthmus::device& where, bool part) {
  auto& member = static_cast<device&>(where);
  auto primary = member.primary();
  ISTHMUS_TRY(primary);
  if (part) {
    return ref<isthmus::queue>{make_ref<cuda::queue>(*this, member, legacy_stream(), true)};
  }
  const made_current here{member.calls(), *primary};
  stream_handle stream = nullptr;
  const auto outcome = here.outcome() != cu::k_success
                           ? here.outcome()
                           : member.calls().create_stream(&stream, cu::k_stream_non_blocking);
  if (outcome != cu::k_success) {
    return call_failed("cuStreamCreate", outcome);
  }
  undo destroyed{[&] { member.calls().destroy_stream(stream); }};
  ref<isthmus::queue> made{make_ref<cuda::queue>(*this, member, stream, false)};
  destroyed.dismiss();
  member.streams().add(stream, *made);
  return made;
}

}  // namespace isthmus::cuda
