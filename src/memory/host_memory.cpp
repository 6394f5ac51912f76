// SPDX-License-Identifier: Apache-2.0
#include "memory/host_memory.hpp"

#include <algorithm>
#include <string>

#include "core/never_destroyed.hpp"
#include "core/sizes.hpp"
#include "core/text.hpp"
#include "core/undo.hpp"

namespace isthmus {
namespace {

// A look takes about 10 us, as long as a small allocation by a driver. So between two looks
// requests may take this much altogether, less what was freed.
constexpr std::size_t k_allowance = std::size_t{1} << 20;

constexpr std::size_t less(std::size_t first, std::size_t value) noexcept {
  return first > value ? first - value : 0;
}

bool is_cpu(const Device& device) noexcept {
  return device.properties().type == ISTHMUS_DEVICE_CPU;
}

Error refuse(const Device& device, const AllocationRequest& request, const std::string& reason) {
  return fail(ISTHMUS_ERROR_OUT_OF_MEMORY,
              "cannot allocate {} of {} memory on {}: it would be host memory, of which {}; free "
              "buffers, or request less",
              describe_bytes(request.nbytes), kind_name(request.kind), device.properties().filter,
              reason);
}

}  // namespace

std::size_t memory_for(const Device& device, UsmKind kind) {
  const std::size_t own = device.properties().memory_bytes;
  if (!HostMemory::holds(device, kind)) {
    return own;
  }
  const auto total = os::physical_memory().total;
  return kind == ISTHMUS_KIND_DEVICE ? std::min(own, total) : total;
}

HostMemory& HostMemory::only() {
  static NeverDestroyed<HostMemory> made{os::process_memory_bounds(), os::physical_memory().total};
  return *made;
}

bool HostMemory::holds(const Device& device, UsmKind kind) noexcept {
  return kind != ISTHMUS_KIND_DEVICE || is_cpu(device);
}

Result<void> HostMemory::take(const Device& device, const AllocationRequest& request) {
  const auto nbytes = request.nbytes;
  Undo counted_elsewhere{[&] { count_elsewhere(device, std::size_t{0} - nbytes); }};
  // Counted before `promised_`, so that meanwhile a `look` by another thread assumes too few
  // untouched pages of this process rather than too many.
  count_elsewhere(device, nbytes);
  auto promised = promised_.load(std::memory_order_relaxed);
  do {
    if (nbytes > total_ || promised > total_ - nbytes) {
      return refuse(device, request,
                    formatted("{} of {} are reserved for live allocations",
                              describe_bytes(promised), describe_bytes(total_)));
    }
  } while (
      !promised_.compare_exchange_weak(promised, promised + nbytes, std::memory_order_relaxed));
  counted_elsewhere.dismiss();
  Undo promise{[&] { forget(device, nbytes); }};
  if (!ride(nbytes)) {
    ISTHMUS_TRY(look(device, request));
  }
  promise.dismiss();
  return {};
}

void HostMemory::forget(const Device& device, std::size_t nbytes) noexcept {
  promised_.fetch_sub(nbytes, std::memory_order_relaxed);
  count_elsewhere(device, std::size_t{0} - nbytes);
}

void HostMemory::count_elsewhere(const Device& device, std::size_t more) noexcept {
  if (!is_cpu(device)) {
    elsewhere_.fetch_add(more, std::memory_order_relaxed);
  }
}

void HostMemory::give_back(const Device& device, std::size_t nbytes) noexcept {
  forget(device, nbytes);
  auto left = allowance_.load(std::memory_order_relaxed);
  while (left < k_allowance &&
         !allowance_.compare_exchange_weak(left, left + std::min(nbytes, k_allowance - left),
                                           std::memory_order_relaxed)) {
  }
}

bool HostMemory::ride(std::size_t nbytes) noexcept {
  auto left = allowance_.load(std::memory_order_relaxed);
  while (nbytes <= left) {
    if (allowance_.compare_exchange_weak(left, left - nbytes, std::memory_order_relaxed)) {
      return true;
    }
  }
  return false;
}

// The kernel still counts memory as available that was promised but not touched yet. Its exact
// amount is unknown, but it is at least what was promised beyond the memory that the process has,
// resident or swapped out.
Result<void> HostMemory::look(const Device& device, const AllocationRequest& request) {
  const auto promised =
      less(promised_.load(std::memory_order_relaxed), elsewhere_.load(std::memory_order_relaxed));
  auto wanted = std::max(request.nbytes, less(promised, bounds_.resident()));
  const auto room = bounds_.room(wanted + k_allowance);
  if (wanted > room.bytes && wanted > request.nbytes) {
    wanted = std::max(request.nbytes, less(wanted, bounds_.swapped()));
  }
  if (wanted > room.bytes) {
    return refuse(
        device, request,
        formatted(
            "{} are available according to {}, while {} of live allocations are not written to yet",
            describe_bytes(room.bytes), room.bound, describe_bytes(wanted - request.nbytes)));
  }
  allowance_.store(std::min(k_allowance, room.bytes - wanted), std::memory_order_relaxed);
  return {};
}

}  // namespace isthmus
