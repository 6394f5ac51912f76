// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/chunks.hpp"

#include <algorithm>
#include <array>
#include <new>

#include "backend/call_of_any_thread.hpp"
#include "backend/cuda/current.hpp"
#include "backend/platform.hpp"
#include "core/sizes.hpp"
#include "core/undo.hpp"
#include "os/process.hpp"

namespace isthmus::cuda {
namespace {

constexpr Location k_host{cu::k_location_host, 0};

AllocationProperties properties_of(const Location& location, bool for_network_cards) noexcept {
  AllocationProperties wanted;
  wanted.type = cu::k_allocation_pinned;
  wanted.where = location;
  // Lets other libraries register the chunk with a network card, like memory of cuMemAlloc.
  wanted.gpu_direct = for_network_cards ? 1 : 0;
  return wanted;
}

AccessRights rights_of(const Location& location) noexcept {
  return {location, cu::k_access_read_write};
}
Location location_of(const Device& device) noexcept {
  return {cu::k_location_device, device.index()};
}

}  // namespace

std::unique_ptr<Chunks> Chunks::make(const Device& device, What part) {
  std::size_t granularity = 0;
  const auto wanted = properties_of(part.places.front(), part.for_network_cards);
  if (device.calls().granularity(&granularity, &wanted, cu::k_granularity_minimum) !=
          cu::k_success ||
      !is_power_of_two(granularity)) {
    return nullptr;
  }
  return std::unique_ptr<Chunks>{new Chunks{device, std::move(part), granularity}};
}

std::unique_ptr<Chunks> Chunks::of_device(const Device& device) {
  if (!device.traits().virtual_memory) {
    return nullptr;
  }
  const auto here = location_of(device);
  return make(
      device,
      {ISTHMUS_KIND_DEVICE, device.traits().rdma_of_virtual_memory, {here}, {rights_of(here)}});
}

std::unique_ptr<Chunks> Chunks::of_host(const Device& near,
                                        std::span<isthmus::Device* const> users) {
  // The host is the first user: if a device is first, the driver refuses fills that span two chunks
  // (H100, driver 580).
  What of{ISTHMUS_KIND_HOST, false, {k_host}, {rights_of(k_host)}};
  for (const auto* each : users) {
    const auto& user = static_cast<const Device&>(*each);
    if (!user.traits().virtual_memory || !user.traits().host_virtual_memory) {
      return nullptr;
    }
    of.users.push_back(rights_of(location_of(user)));
  }
  if (const auto node = near.traits().host_node; node >= 0) {
    of.places.insert(of.places.begin(), {cu::k_location_host_node, node});
  }
  return make(near, std::move(of));
}

Result<void*> Chunks::reserve(std::size_t nbytes, std::size_t alignment) {
  if (os::drivers_are_gone()) {
    return process_is_ending();
  }
  Place made = 0;
  if (const auto outcome = calls().reserve(&made, nbytes, std::max(alignment, granularity_), 0, 0);
      outcome != cu::k_success) {
    return fail(
        outcome == cu::k_error_OUT_OF_MEMORY ? ISTHMUS_ERROR_OUT_OF_MEMORY : status_of(outcome),
        "cannot reserve {} of addresses on {}: cuMemAddressReserve: {} ({})",
        describe_bytes(nbytes), device_.properties().filter, code_name(outcome), outcome);
  }
  return pointer_to(made);
}

void Chunks::release(void* base, std::size_t nbytes) noexcept {
  if (!os::drivers_are_gone()) {
    calls().release_addresses(place_of(base), nbytes);
  }
}

bool Chunks::works() noexcept try {
  if (works_.load(std::memory_order_relaxed)) {
    return true;
  }
  auto base = reserve(granularity_, granularity_);
  const Undo released{[&] {
    if (base) {
      release(*base, granularity_);
    }
  }};
  auto done = base ? create(*base, granularity_) : Result<void>{base.take_error()};
  if (done) {
    destroy(*base, granularity_);
  }
  const bool refused = !done && (done.failure().code() == ISTHMUS_ERROR_UNSUPPORTED ||
                                 done.failure().code() == ISTHMUS_ERROR_INVALID_ARGUMENT ||
                                 done.failure().code() == ISTHMUS_ERROR_DRIVER);
  works_.store(static_cast<bool>(done), std::memory_order_relaxed);
  return !refused;
} catch (const std::bad_alloc&) {
  return true;
}

// Grants access to the peers that are in use now. A peer without a context gains access only to
// chunks mapped after it has one. If the driver refuses the peers, maps without them: nothing
// depends on their access.
Code Chunks::open(void* at, std::size_t nbytes) const noexcept {
  constexpr std::size_t k_most = 64;  // devices
  std::array<AccessRights, k_most> users;
  auto last = std::copy_n(of_.users.begin(), std::min(of_.users.size(), k_most), users.begin());
  const auto own = last;
  if (of_.kind == ISTHMUS_KIND_DEVICE && calls().can_access_peer != nullptr) {
    for (const auto& each : device_.platform().devices()) {
      const auto& peer = static_cast<const Device&>(*each);
      int reaches = 0;
      if (&peer != &device_ && last != users.end() && peer.known_primary() != nullptr &&
          calls().can_access_peer(&reaches, peer.index(), device_.index()) == cu::k_success &&
          reaches != 0) {
        *last++ = rights_of(location_of(peer));
      }
    }
  }
  const auto open_to = [&](const AccessRights* end) {
    return calls().set_access(place_of(at), nbytes, users.data(),
                              static_cast<std::size_t>(end - users.data()));
  };
  const auto outcome = open_to(last);
  return outcome == cu::k_success || last == own ? outcome : open_to(own);
}

// On failure nothing is mapped at `at`.
Result<void> Chunks::map(void* at, std::size_t nbytes, MemoryHandle handle) noexcept {
  if (const auto outcome = calls().map(place_of(at), nbytes, 0, handle, 0);
      outcome != cu::k_success) {
    return call_failed("cuMemMap", outcome);
  }
  if (const auto outcome = open(at, nbytes); outcome != cu::k_success) {
    calls().unmap(place_of(at), nbytes);
    return call_failed("cuMemSetAccess", outcome);
  }
  return {};
}

// Creates the chunk exportable as a file descriptor if the driver supports that. The first chunk
// determines it, since a system may refuse what the driver's attributes promise. Costs 1 us of 12
// (H200).
Code Chunks::obtain_at(MemoryHandle& made, std::size_t nbytes,
                       const Location& location) const noexcept {
  auto wanted = properties_of(location, of_.for_network_cards);
  if (of_.kind == ISTHMUS_KIND_DEVICE && !refuses_export_.load(std::memory_order_relaxed)) {
    wanted.handle_types = cu::k_handle_posix_file;
    const auto outcome = calls().create_memory(&made, nbytes, &wanted, 0);
    if (outcome == cu::k_success || outcome == cu::k_error_OUT_OF_MEMORY) {
      return outcome;
    }
    wanted.handle_types = 0;
    const auto plain = calls().create_memory(&made, nbytes, &wanted, 0);
    if (plain == cu::k_success) {
      refuses_export_.store(true, std::memory_order_relaxed);
    }
    return plain;
  }
  return calls().create_memory(&made, nbytes, &wanted, 0);
}

// Tries the locations in order. If all fail, returns OUT_OF_MEMORY if any of them did, since
// callers can react to that; otherwise the error of the first one.
Code Chunks::obtain(MemoryHandle& made, std::size_t nbytes) const noexcept {
  auto refused = cu::k_success;
  for (const auto& each : of_.places) {
    const auto outcome = obtain_at(made, nbytes, each);
    if (outcome == cu::k_success) {
      return outcome;
    }
    if (refused == cu::k_success || outcome == cu::k_error_OUT_OF_MEMORY) {
      refused = outcome;
    }
  }
  return refused;
}

Result<void> Chunks::create(void* at, std::size_t nbytes) {
  auto primary = device_.primary();
  ISTHMUS_TRY(primary);
  const MadeCurrent here{calls(), *primary};
  MemoryHandle made = 0;
  if (const auto outcome = obtain(made, nbytes); outcome != cu::k_success) {
    return fail(status_of(outcome), "{} did not allocate {} of {} memory: cuMemCreate: {} ({})",
                device_.properties().filter, describe_bytes(nbytes), kind_name(of_.kind),
                code_name(outcome), outcome);
  }
  auto done = map(at, nbytes, made);
  if (done) {
    try {
      const std::lock_guard hold{lock_};
      handles_.emplace(at, made);
      return {};
    } catch (const std::bad_alloc&) {
      calls().unmap(place_of(at), nbytes);
      done = Error::no_memory();
    }
  }
  calls().release_memory(made);
  return done;
}

// `destination` is entered beforehand, so that nothing can fail after the driver has mapped it.
Result<void> Chunks::move(void* source, void* destination, std::size_t nbytes, bool& to_lost) {
  to_lost = false;
  const MadeCurrent here{calls(), device_.known_primary()};
  MemoryHandle moved = 0;
  {
    const std::lock_guard hold{lock_};
    moved = handles_.at(source);
    handles_.emplace(destination, moved);
  }
  auto mapped = map(destination, nbytes, moved);
  const std::lock_guard hold{lock_};
  handles_.erase(mapped ? source : destination);
  return mapped;
}

void Chunks::leave(void* source, std::size_t nbytes) noexcept {
  if (!os::drivers_are_gone()) {
    calls().unmap(place_of(source), nbytes);
  }
}

void Chunks::destroy(void* at, std::size_t nbytes) noexcept {
  MemoryHandle gone = 0;
  {
    const std::lock_guard hold{lock_};
    const auto found = handles_.find(at);
    if (found == handles_.end()) {
      return;
    }
    gone = found->second;
    handles_.erase(found);
  }
  if (!os::drivers_are_gone()) {
    calls().unmap(place_of(at), nbytes);
    calls().release_memory(gone);
  }
}

}  // namespace isthmus::cuda
