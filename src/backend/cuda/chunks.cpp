// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/chunks.hpp"

#include <algorithm>
#include <array>
#include <new>

#include "backend/call_of_any_thread.hpp"
#include "backend/cuda/current.hpp"
#include "backend/platform.hpp"
#include "core/lock_guard.hpp"
#include "core/sizes.hpp"
#include "core/undo.hpp"
#include "os/process.hpp"

namespace isthmus::cuda {
namespace {

constexpr CUmemLocation k_host_location{cu::k_location_host, 0};

CUmemAllocationProp properties_of(const CUmemLocation& location, bool rdma_capable) noexcept {
  CUmemAllocationProp prop;
  prop.type = cu::k_allocation_pinned;
  prop.location = location;
  // Allows other libraries to register the chunk with a network card, as for memory of cuMemAlloc.
  prop.gpuDirectRDMACapable = rdma_capable ? 1 : 0;
  return prop;
}

CUmemAccessDesc rights_of(const CUmemLocation& location) noexcept {
  return {location, cu::k_access_read_write};
}
CUmemLocation location_of(const Device& device) noexcept {
  return {cu::k_location_device, device.index()};
}

}  // namespace

std::unique_ptr<Chunks> Chunks::make(const Device& device, Properties properties) {
  std::size_t granularity = 0;
  const auto prop = properties_of(properties.locations.front(), properties.rdma_capable);
  if (device.calls().granularity(&granularity, &prop, cu::k_granularity_minimum) != cu::k_success ||
      !is_power_of_two(granularity)) {
    return nullptr;
  }
  return std::unique_ptr<Chunks>{new Chunks{device, std::move(properties), granularity}};
}

std::unique_ptr<Chunks> Chunks::of_device(const Device& device) {
  if (!device.traits().virtual_memory) {
    return nullptr;
  }
  const auto location = location_of(device);
  return make(device, {ISTHMUS_KIND_DEVICE,
                       device.traits().rdma_with_virtual_memory,
                       {location},
                       {rights_of(location)}});
}

std::unique_ptr<Chunks> Chunks::of_host(const Device& device,
                                        std::span<isthmus::Device* const> users) {
  // The host is the first user: if a device is first, the driver refuses fills that span two chunks
  // (H100, driver 580).
  Properties properties{ISTHMUS_KIND_HOST, false, {k_host_location}, {rights_of(k_host_location)}};
  for (const auto* each : users) {
    const auto& user = static_cast<const Device&>(*each);
    if (!user.traits().virtual_memory || !user.traits().host_virtual_memory) {
      return nullptr;
    }
    properties.users.push_back(rights_of(location_of(user)));
  }
  if (const auto node = device.traits().host_numa_node; node >= 0) {
    properties.locations.insert(properties.locations.begin(), {cu::k_location_host_numa, node});
  }
  return make(device, std::move(properties));
}

Result<void*> Chunks::reserve(std::size_t nbytes, std::size_t alignment) {
  if (os::drivers_unavailable()) {
    return driver_unavailable_error();
  }
  CUdeviceptr base = 0;
  if (const auto outcome = calls().reserve(&base, nbytes, std::max(alignment, granularity_), 0, 0);
      outcome != cu::k_success) {
    return fail(
        outcome == cu::k_error_OUT_OF_MEMORY ? ISTHMUS_ERROR_OUT_OF_MEMORY : status_of(outcome),
        "cannot reserve {} of addresses on {}: cuMemAddressReserve: {} ({})",
        describe_bytes(nbytes), device_.properties().filter, code_name(outcome), outcome);
  }
  return to_pointer(base);
}

void Chunks::release(void* base, std::size_t nbytes) noexcept {
  if (!os::drivers_unavailable()) {
    calls().release_addresses(to_deviceptr(base), nbytes);
  }
}

bool Chunks::can_create() noexcept try {
  if (can_create_.load(std::memory_order_relaxed)) {
    return true;
  }
  auto base = reserve(granularity_, granularity_);
  const Undo cleanup{[&] {
    if (base) {
      release(*base, granularity_);
    }
  }};
  auto result = base ? create(*base, granularity_) : Result<void>{base.take_error()};
  if (result) {
    destroy(*base, granularity_);
  }
  const bool unsupported = !result && (result.failure().code() == ISTHMUS_ERROR_UNSUPPORTED ||
                                       result.failure().code() == ISTHMUS_ERROR_INVALID_ARGUMENT ||
                                       result.failure().code() == ISTHMUS_ERROR_DRIVER);
  can_create_.store(static_cast<bool>(result), std::memory_order_relaxed);
  return !unsupported;
} catch (const std::bad_alloc&) {
  return true;
}

// Grants access to the users in `properties_` and to the device's peers whose contexts exist. A
// peer whose context is created later gains access only to chunks mapped afterwards. If the driver
// refuses to grant access to the peers, omits them: nothing depends on their access.
CUresult Chunks::grant_access(void* address, std::size_t nbytes) const noexcept {
  constexpr std::size_t k_max_users = 64;  // devices
  std::array<CUmemAccessDesc, k_max_users> users;
  auto last = std::copy_n(properties_.users.begin(),
                          std::min(properties_.users.size(), k_max_users), users.begin());
  const auto end_without_peers = last;
  if (properties_.kind == ISTHMUS_KIND_DEVICE && calls().can_access_peer != nullptr) {
    for (const auto& each : device_.platform().devices()) {
      const auto& peer = static_cast<const Device&>(*each);
      int can_access = 0;
      if (&peer != &device_ && last != users.end() && peer.primary_or_null() != nullptr &&
          calls().can_access_peer(&can_access, peer.index(), device_.index()) == cu::k_success &&
          can_access != 0) {
        *last++ = rights_of(location_of(peer));
      }
    }
  }
  const auto grant_to = [&](const CUmemAccessDesc* end) {
    return calls().set_access(to_deviceptr(address), nbytes, users.data(),
                              static_cast<std::size_t>(end - users.data()));
  };
  const auto outcome = grant_to(last);
  return outcome == cu::k_success || last == end_without_peers ? outcome
                                                               : grant_to(end_without_peers);
}

// On failure nothing is mapped at `address`.
Result<void> Chunks::map(void* address, std::size_t nbytes,
                         CUmemGenericAllocationHandle handle) noexcept {
  if (const auto outcome = calls().map(to_deviceptr(address), nbytes, 0, handle, 0);
      outcome != cu::k_success) {
    return call_failed("cuMemMap", outcome);
  }
  if (const auto outcome = grant_access(address, nbytes); outcome != cu::k_success) {
    calls().unmap(to_deviceptr(address), nbytes);
    return call_failed("cuMemSetAccess", outcome);
  }
  return {};
}

// Creates the chunk so that it can be exported as a file descriptor, if the system supports that.
// Creating the first chunk determines whether it does, since a system may refuse exports although
// the driver's attributes report support. Support for export accounts for 1 us of the 12 us of a
// creation (H200).
CUresult Chunks::obtain_at(CUmemGenericAllocationHandle& handle, std::size_t nbytes,
                           const CUmemLocation& location) const noexcept {
  auto prop = properties_of(location, properties_.rdma_capable);
  if (properties_.kind == ISTHMUS_KIND_DEVICE &&
      !export_unsupported_.load(std::memory_order_relaxed)) {
    prop.requestedHandleTypes = cu::k_handle_type_posix_fd;
    const auto outcome = calls().create_memory(&handle, nbytes, &prop, 0);
    if (outcome == cu::k_success || outcome == cu::k_error_OUT_OF_MEMORY) {
      return outcome;
    }
    prop.requestedHandleTypes = 0;
    const auto retry_outcome = calls().create_memory(&handle, nbytes, &prop, 0);
    if (retry_outcome == cu::k_success) {
      export_unsupported_.store(true, std::memory_order_relaxed);
    }
    return retry_outcome;
  }
  return calls().create_memory(&handle, nbytes, &prop, 0);
}

// Tries the locations in order. If all fail, returns OUT_OF_MEMORY if any of them did, since
// callers can react to that; otherwise the error of the first one.
CUresult Chunks::obtain(CUmemGenericAllocationHandle& handle, std::size_t nbytes) const noexcept {
  auto failure = cu::k_success;
  for (const auto& location : properties_.locations) {
    const auto outcome = obtain_at(handle, nbytes, location);
    if (outcome == cu::k_success) {
      return outcome;
    }
    if (failure == cu::k_success || outcome == cu::k_error_OUT_OF_MEMORY) {
      failure = outcome;
    }
  }
  return failure;
}

Result<void> Chunks::create(void* address, std::size_t nbytes) {
  auto primary = device_.primary();
  ISTHMUS_TRY(primary);
  const ContextGuard guard{calls(), *primary};
  CUmemGenericAllocationHandle handle = 0;
  if (const auto outcome = obtain(handle, nbytes); outcome != cu::k_success) {
    return fail(status_of(outcome), "{} did not allocate {} of {} memory: cuMemCreate: {} ({})",
                device_.properties().filter, describe_bytes(nbytes), kind_name(properties_.kind),
                code_name(outcome), outcome);
  }
  auto result = map(address, nbytes, handle);
  if (result) {
    try {
      const LockGuard hold{lock_};
      handles_.emplace(address, handle);
      return {};
    } catch (const std::bad_alloc&) {
      calls().unmap(to_deviceptr(address), nbytes);
      result = Error::no_memory();
    }
  }
  calls().release_memory(handle);
  return result;
}

// Inserts `destination` in `handles_` beforehand, so that nothing can fail after the driver has
// mapped it.
Result<void> Chunks::move(void* source, void* destination, std::size_t nbytes,
                          bool& destination_lost) {
  destination_lost = false;
  const ContextGuard guard{calls(), device_.primary_or_null()};
  CUmemGenericAllocationHandle handle = 0;
  {
    const LockGuard hold{lock_};
    handle = handles_.at(source);
    handles_.emplace(destination, handle);
  }
  auto result = map(destination, nbytes, handle);
  const LockGuard hold{lock_};
  handles_.erase(result ? source : destination);
  return result;
}

void Chunks::unmap_old(void* source, std::size_t nbytes) noexcept {
  if (!os::drivers_unavailable()) {
    calls().unmap(to_deviceptr(source), nbytes);
  }
}

void Chunks::destroy(void* address, std::size_t nbytes) noexcept {
  CUmemGenericAllocationHandle handle = 0;
  {
    const LockGuard hold{lock_};
    const auto found = handles_.find(address);
    if (found == handles_.end()) {
      return;
    }
    handle = found->second;
    handles_.erase(found);
  }
  if (!os::drivers_unavailable()) {
    calls().unmap(to_deviceptr(address), nbytes);
    calls().release_memory(handle);
  }
}

}  // namespace isthmus::cuda
