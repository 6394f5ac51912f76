#include "backend/cuda/chunks.hpp"

#include <algorithm>
#include <new>

#include "backend/cuda/current.hpp"
#include "core/sizes.hpp"
#include "os/process.hpp"

namespace isthmus::cuda {
namespace {

allocation_properties properties_of(const device& where) noexcept {
  allocation_properties wanted;
  wanted.type = cu::k_allocation_pinned;
  wanted.where = {cu::k_location_device, where.index()};
  // So that others may register it with a network card, as they may memory of cuMemAlloc.
  wanted.gpu_direct = where.traits().rdma_of_virtual_memory ? 1 : 0;
  return wanted;
}

}  // namespace

std::unique_ptr<chunks> chunks::make(const device& where) {
  std::size_t granularity = 0;
  const auto wanted = properties_of(where);
  if (!where.traits().virtual_memory ||
      where.calls().granularity(&granularity, &wanted, cu::k_granularity_minimum) !=
          cu::k_success ||
      !is_power_of_two(granularity)) {
    return nullptr;
  }
  return std::make_unique<chunks>(where, granularity);
}

result<void*> chunks::reserve(std::size_t nbytes, std::size_t alignment) {
  if (os::drivers_are_gone()) {
    return process_is_ending();
  }
  place made = 0;
  if (const auto outcome = calls().reserve(&made, nbytes, std::max(alignment, granularity_), 0, 0);
      outcome != cu::k_success) {
    return fail(
        outcome == cu::k_error_OUT_OF_MEMORY ? ISTHMUS_ERROR_OUT_OF_MEMORY : status_of(outcome),
        "no {} of addresses on {}: cuMemAddressReserve: {} ({})", describe_bytes(nbytes),
        where_.properties().filter, code_name(outcome), outcome);
  }
  return pointer_to(made);
}

void chunks::release(void* base, std::size_t nbytes) noexcept {
  if (!os::drivers_are_gone()) {
    calls().release_addresses(place_of(base), nbytes);
  }
}

// On failure nothing is mapped there.
result<void> chunks::map(void* at, std::size_t nbytes, memory_handle what) noexcept {
  if (const auto outcome = calls().map(place_of(at), nbytes, 0, what, 0);
      outcome != cu::k_success) {
    return call_failed("cuMemMap", outcome);
  }
  const access_rights ours{{cu::k_location_device, where_.index()}, cu::k_access_read_write};
  if (const auto outcome = calls().set_access(place_of(at), nbytes, &ours, 1);
      outcome != cu::k_success) {
    calls().unmap(place_of(at), nbytes);
    return call_failed("cuMemSetAccess", outcome);
  }
  return {};
}

result<void> chunks::create(void* at, std::size_t nbytes) {
  auto primary = where_.primary();
  ISTHMUS_TRY(primary);
  const made_current here{calls(), *primary};
  memory_handle made = 0;
  const auto wanted = properties_of(where_);
  if (const auto outcome = calls().create_memory(&made, nbytes, &wanted, 0);
      outcome != cu::k_success) {
    return fail(status_of(outcome), "{} did not give {} of device memory: cuMemCreate: {} ({})",
                where_.properties().filter, describe_bytes(nbytes), code_name(outcome), outcome);
  }
  auto done = map(at, nbytes, made);
  if (done) {
    try {
      const std::lock_guard hold{lock_};
      handles_.emplace(at, made);
      return {};
    } catch (const std::bad_alloc&) {
      calls().unmap(place_of(at), nbytes);
      done = error::no_memory();
    }
  }
  calls().release_memory(made);
  return done;
}

// Entered at both ends first, so that nothing fails once the driver has done it.
result<void> chunks::move(void* from, void* to, std::size_t nbytes, bool& to_lost) {
  to_lost = false;
  const made_current here{calls(), where_.known_primary()};
  memory_handle moved = 0;
  {
    const std::lock_guard hold{lock_};
    moved = handles_.at(from);
    handles_.emplace(to, moved);
  }
  auto mapped = map(to, nbytes, moved);
  const std::lock_guard hold{lock_};
  handles_.erase(mapped ? from : to);
  return mapped;
}

void chunks::leave(void* from, std::size_t nbytes) noexcept {
  if (!os::drivers_are_gone()) {
    calls().unmap(place_of(from), nbytes);
  }
}

void chunks::destroy(void* at, std::size_t nbytes) noexcept {
  memory_handle gone = 0;
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
