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

Code call_for(const Api& calls, const AllocationRequest& request, void*& made) noexcept {
  const auto nbytes = request.nbytes;
  Place at = 0;
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

Error not_allocated(const Device& device, UsmKind kind, std::size_t nbytes, Code outcome) {
  if (outcome != cu::k_error_OUT_OF_MEMORY) {
    return call_failed("an allocation", outcome);
  }
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  static_cast<void>(device.calls().memory_info(&free_bytes, &total_bytes));
  return fail(ISTHMUS_ERROR_OUT_OF_MEMORY,
              "{} did not allocate {} of {} memory: {} ({}); it has {} free",
              device.properties().filter, describe_bytes(nbytes), kind_name(kind),
              code_name(outcome), outcome, describe_bytes(free_bytes));
}

Error more_than_free(const Device& device, std::size_t nbytes, std::size_t free_bytes) {
  return fail(ISTHMUS_ERROR_OUT_OF_MEMORY,
              "{} has {} free, and other shared memory counts against it: {} of shared memory "
              "would exceed it, which can hang the device; use the host kind, or allocate less",
              device.properties().filter, describe_bytes(free_bytes), describe_bytes(nbytes));
}

}  // namespace

Context::Context(Platform& platform, std::vector<isthmus::Device*> members,
                 isthmus::Platform* whole)
    : isthmus::Context{std::move(members), whole}, driver_{platform} {
  for (auto* member : devices()) {
    const auto& where = static_cast<Device&>(*member);
    movable_.push_back({Chunks::of_device(where), Chunks::of_host(where, devices())});
  }
}

// Preferably a device whose context exists: creating one takes device memory.
Device& Context::any() const noexcept {
  const auto known = std::find_if(devices().begin(), devices().end(), [](const auto* member) {
    return static_cast<const Device*>(member)->known_primary() != nullptr;
  });
  return static_cast<Device&>(known != devices().end() ? **known : *devices().front());
}

void* Context::native() const noexcept {
  auto primary = static_cast<Device&>(*devices().front()).primary();
  return primary ? *primary : nullptr;
}

PointerFacts Context::query(const void* pointer) noexcept {
  auto primary = any().primary();
  if (!primary) {
    return {};
  }
  const MadeCurrent here{driver_.calls(), *primary};
  const auto told = ask_pointer(driver_.calls(), pointer);
  if (told.kind == ISTHMUS_KIND_UNKNOWN) {
    return {};
  }
  return {told.kind, told.base, told.nbytes,
          told.kind == ISTHMUS_KIND_HOST ? nullptr : driver_.find(told.where)};
}

ChunkSource* Context::chunks(isthmus::Device& device, UsmKind kind) noexcept {
  const auto found = std::find(devices().begin(), devices().end(), &device);
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
Result<void*> Context::obtain(Device& device, const AllocationRequest& request) {
  const auto& calls = device.calls();
  const auto kind = request.kind;
  const auto nbytes = request.nbytes;
  if (kind == ISTHMUS_KIND_SHARED) {
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    if (const auto outcome = calls.memory_info(&free_bytes, &total_bytes);
        outcome != cu::k_success) {
      return call_failed("cuMemGetInfo", outcome);
    }
    if (!device.claim_managed(nbytes, free_bytes)) {
      return more_than_free(device, nbytes, free_bytes);
    }
  }
  void* made = nullptr;
  if (const auto outcome = call_for(calls, request, made); outcome != cu::k_success) {
    if (kind == ISTHMUS_KIND_SHARED) {
      device.unclaim_managed(nbytes);
    }
    return not_allocated(device, kind, nbytes, outcome);
  }
  return made;
}

Result<void*> Context::obtain_larger(Device& device, const AllocationRequest& request) {
  const auto nbytes = request.nbytes + request.alignment - 1;
  auto start = obtain(device, {request.kind, nbytes, 0, request.write_combined});
  ISTHMUS_TRY(start);
  auto* const aligned = static_cast<std::byte*>(*start) +
                        (round_up(address(*start), request.alignment) - address(*start));
  try {
    const std::lock_guard hold{larger_lock_};
    larger_.emplace(aligned, WholeBlock{*start, nbytes});
  } catch (const std::bad_alloc&) {
    give_back(device, *start, request.kind, nbytes);
    return Error::no_memory();
  }
  larger_count_.fetch_add(1, std::memory_order_relaxed);
  return aligned;
}

Result<void*> Context::do_allocate(isthmus::Device& device, const AllocationRequest& request) {
  auto& home = static_cast<Device&>(device);
  auto primary = home.primary();
  ISTHMUS_TRY(primary);
  const MadeCurrent here{home.calls(), *primary};
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
void Context::give_back(Device& device, void* pointer, UsmKind kind, std::size_t nbytes) noexcept {
  if (kind == ISTHMUS_KIND_HOST) {
    device.calls().free_host(pointer);
    return;
  }
  device.calls().free_device(place_of(pointer));
  if (kind == ISTHMUS_KIND_SHARED) {
    device.unclaim_managed(nbytes);
  }
}

void Context::do_deallocate(void* pointer, UsmKind kind, std::size_t nbytes) noexcept {
  auto& known = any();
  const MadeCurrent one{driver_.calls(), known.known_primary()};
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
  const MadeCurrent here{driver_.calls(), where.known_primary()};
  give_back(where, pointer, kind, nbytes);
}

Result<Ref<isthmus::Queue>> Context::make_queue(isthmus::Device& device, bool part) {
  auto& member = static_cast<Device&>(device);
  auto primary = member.primary();
  ISTHMUS_TRY(primary);
  if (part) {
    return Ref<isthmus::Queue>{make_ref<cuda::Queue>(*this, member, legacy_stream(), true)};
  }
  const MadeCurrent here{member.calls(), *primary};
  StreamHandle stream = nullptr;
  const auto outcome = here.outcome() != cu::k_success
                           ? here.outcome()
                           : member.calls().create_stream(&stream, cu::k_stream_non_blocking);
  if (outcome != cu::k_success) {
    return call_failed("cuStreamCreate", outcome);
  }
  Undo destroyed{[&] { member.calls().destroy_stream(stream); }};
  Ref<isthmus::Queue> made{make_ref<cuda::Queue>(*this, member, stream, false)};
  destroyed.dismiss();
  member.streams().add(stream, *made);
  return made;
}

}  // namespace isthmus::cuda
