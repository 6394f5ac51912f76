// SPDX-License-Identifier: Apache-2.0
#include "memory/base/provider.hpp"

#include "memory/base/deferred_release.hpp"
#include "memory/base/host_memory.hpp"
#include "memory/base/oom_stages.hpp"
#include "memory/base/other_pools.hpp"
#include "memory/base/tags.hpp"
#include "recorder/observers.hpp"

namespace isthmus {
namespace {

template <class Value>
void record_refusal(const Result<Value>& result, std::size_t nbytes) noexcept {
  if (is_out_of_memory(result)) {
    ++driver_refusals;
    driver_refused_bytes = nbytes;
  }
}

// Calls the driver through `allocate`. Memory that resides on the host is first reserved in
// `HostMemory`, and refused if there is not enough.
template <class Allocate>
auto allocate_counted(Context& context, Device& device, const AllocationRequest& request,
                      Allocate&& allocate) -> decltype(allocate()) {
  start_release_thread();
  if (!HostMemory::is_host_memory(device, request.kind)) {
    auto result = allocate();
    record_refusal(result, request.nbytes);
    return result;
  }
  if (auto reserved = HostMemory::only().reserve(device, request); !reserved) {
    record_refusal(reserved, request.nbytes);
    // The error for an invalid kind or alignment takes precedence, as for a size that fits.
    auto invalid = context.check(device, request);
    return invalid ? std::move(invalid) : reserved.take_error();
  }
  auto result = allocate();
  if (!result) {
    record_refusal(result, request.nbytes);
    HostMemory::only().release(device, request.nbytes);
  }
  return result;
}

void add(LiveCounts* live, UsmKind kind, const void* pointer, std::size_t nbytes) noexcept {
  if (live != nullptr) {
    live->add(pointer, kind, nbytes);
  }
}

void remove(LiveCounts* live, UsmKind kind, const void* pointer, std::size_t nbytes) noexcept {
  if (live != nullptr) {
    live->remove(pointer, kind, nbytes);
  }
}

void uncount(const Device& device, UsmKind kind, const void* pointer, std::size_t nbytes,
             LiveCounts* live) noexcept {
  remove(live, kind, pointer, nbytes);
  if (HostMemory::is_host_memory(device, kind)) {
    HostMemory::only().release(device, nbytes);
  }
}

Result<void*> observed(Result<void*> pointer, std::size_t nbytes) noexcept {
  if (pointer) {
    observe(MemoryEventKind::allocate, [&] {
      return MemoryEvent{.kind = MemoryEventKind::allocate,
                         .address = *pointer,
                         .nbytes = nbytes,
                         .requested = nbytes,
                         .tag = current_tag()};
    });
  }
  return pointer;
}

}  // namespace

Result<void*> provider_allocate(Context& context, Device& device, const AllocationRequest& request,
                                LiveCounts* live) {
  auto pointer =
      allocate_counted(context, device, request, [&] { return context.allocate(device, request); });
  if (pointer) {
    add(live, request.kind, *pointer, request.nbytes);
  }
  return pointer;
}

Result<void*> provider_allocate_or_trim(Context& context, Device& device,
                                        const AllocationRequest& request) {
  auto pointer = provider_allocate(context, device, request);
  if (!is_out_of_memory(pointer) || request.nbytes > device.properties().max_allocation_bytes ||
      no_wait != 0 || in_continuation()) {
    return observed(std::move(pointer), request.nbytes);
  }
  return observed(
      with_other_pools(
          {device, request.kind, request.nbytes},
          [&] { return provider_allocate(context, device, request); }, std::move(pointer)),
      request.nbytes);
}

void provider_deallocate(Context& context, Device& device, UsmKind kind, void* pointer,
                         std::size_t nbytes, LiveCounts* live) noexcept {
  context.deallocate(pointer, kind, nbytes);
  uncount(device, kind, pointer, nbytes, live);
}

void provider_free(Context& context, Device& device, UsmKind kind, void* pointer,
                   std::size_t nbytes) noexcept {
  observe(MemoryEventKind::free, [&] {
    return MemoryEvent{.kind = MemoryEventKind::free, .address = pointer, .nbytes = nbytes};
  });
  provider_deallocate(context, device, kind, pointer, nbytes);
}

Result<void> provider_create(ChunkSource& source, Context& context, Device& device,
                             const AllocationRequest& request, void* at, LiveCounts* live) {
  ISTHMUS_TRY(allocate_counted(context, device, request,
                               [&] { return source.create(at, request.nbytes); }));
  add(live, request.kind, at, request.nbytes);
  return {};
}

void provider_destroy(ChunkSource& source, Device& device, UsmKind kind, void* at,
                      std::size_t nbytes, LiveCounts* live) noexcept {
  source.destroy(at, nbytes);
  uncount(device, kind, at, nbytes, live);
}

// Adds the parts before it removes the whole, so that a total read meanwhile is never too low.
void provider_divided(UsmKind kind, std::span<std::byte> front, std::span<std::byte> rest,
                      LiveCounts* live) noexcept {
  add(live, kind, front.data(), front.size());
  add(live, kind, rest.data(), rest.size());
  remove(live, kind, front.data(), front.size() + rest.size());
}

void provider_moved(UsmKind kind, void* source, void* destination, std::size_t nbytes,
                    LiveCounts* live) noexcept {
  add(live, kind, destination, nbytes);
  remove(live, kind, source, nbytes);
}

Result<void*> Provider::allocate(std::size_t nbytes, std::size_t alignment, Queue& queue) {
  if (auto refused = queue.check_allocation()) {
    return refused;
  }
  auto pointer =
      provider_allocate_or_trim(context(), device(), {kind(), nbytes, alignment, write_combined_});
  if (pointer) {
    counts_.record_allocation(nbytes);
  }
  return pointer;
}

Result<void> Provider::deallocate(void* pointer, std::size_t nbytes, Queue*) noexcept {
  provider_free(context(), device(), kind(), pointer, nbytes);
  counts_.record_release(nbytes);
  return {};
}

MemoryResource::MemoryUsage Provider::usage() noexcept {
  return {counts_.held_bytes(), 0, counts_.maps(), counts_.unmaps()};
}

}  // namespace isthmus
