// SPDX-License-Identifier: Apache-2.0
#include "memory/base/host_memory.hpp"

#include <algorithm>
#include <string>

#include "core/expects.hpp"
#include "core/never_destroyed.hpp"
#include "core/sizes.hpp"
#include "core/text.hpp"
#include "core/undo.hpp"

namespace isthmus {
namespace {

// `check_available` takes about 10 us, as long as a small allocation by a driver. Therefore
// requests may reserve this many bytes altogether between two such checks, not counting bytes that
// were freed.
constexpr std::size_t k_allowance = std::size_t{1} << 20;

constexpr std::size_t subtract_or_zero(std::size_t first, std::size_t value) noexcept {
  return first > value ? first - value : 0;
}

bool is_cpu(const Device& device) noexcept {
  return device.properties().type == ISTHMUS_DEVICE_CPU;
}

Error refusal(const Device& device, const AllocationRequest& request, const std::string& reason) {
  return fail(ISTHMUS_ERROR_OUT_OF_MEMORY,
              "cannot allocate {} of {} memory on {}: it would reside on the host, where {}; free "
              "buffers, or request less",
              describe_bytes(request.nbytes), kind_name(request.kind), device.properties().filter,
              reason);
}

}  // namespace

std::size_t memory_for(const Device& device, UsmKind kind) {
  const std::size_t own = device.properties().memory_bytes;
  if (!HostMemory::is_host_memory(device, kind)) {
    return own;
  }
  const auto total = os::physical_memory().total;
  return kind == ISTHMUS_KIND_DEVICE ? std::min(own, total) : total;
}

HostMemory& HostMemory::only() {
  static NeverDestroyed<HostMemory> instance{os::process_memory_bounds(),
                                             os::physical_memory().total};
  return *instance;
}

bool HostMemory::is_host_memory(const Device& device, UsmKind kind) noexcept {
  return kind != ISTHMUS_KIND_DEVICE || is_cpu(device);
}

Result<void> HostMemory::reserve(const Device& device, const AllocationRequest& request) {
  ISTHMUS_EXPECTS(is_host_memory(device, request.kind), request.kind);
  const auto nbytes = request.nbytes;
  Undo uncount{[&] { count_device_owned(device, std::size_t{0} - nbytes); }};
  // Counted before `reserved_`, so that a concurrent `check_available` underestimates the untouched
  // memory of this process instead of overestimating it.
  count_device_owned(device, nbytes);
  auto reserved = reserved_.load(std::memory_order_relaxed);
  do {
    if (nbytes > total_ || reserved > total_ - nbytes) {
      return refusal(device, request,
                     formatted("{} of {} are reserved for live allocations",
                               describe_bytes(reserved), describe_bytes(total_)));
    }
  } while (
      !reserved_.compare_exchange_weak(reserved, reserved + nbytes, std::memory_order_relaxed));
  uncount.dismiss();
  Undo rollback{[&] { unreserve(device, nbytes); }};
  if (!take_from_allowance(nbytes)) {
    ISTHMUS_TRY(check_available(device, request));
  }
  rollback.dismiss();
  return {};
}

void HostMemory::unreserve(const Device& device, std::size_t nbytes) noexcept {
  reserved_.fetch_sub(nbytes, std::memory_order_relaxed);
  count_device_owned(device, std::size_t{0} - nbytes);
}

void HostMemory::count_device_owned(const Device& device, std::size_t more) noexcept {
  if (!is_cpu(device)) {
    device_owned_.fetch_add(more, std::memory_order_relaxed);
  }
}

void HostMemory::release(const Device& device, std::size_t nbytes) noexcept {
  unreserve(device, nbytes);
  auto remaining = allowance_.load(std::memory_order_relaxed);
  while (remaining < k_allowance &&
         !allowance_.compare_exchange_weak(remaining,
                                           remaining + std::min(nbytes, k_allowance - remaining),
                                           std::memory_order_relaxed)) {
  }
}

bool HostMemory::take_from_allowance(std::size_t nbytes) noexcept {
  auto remaining = allowance_.load(std::memory_order_relaxed);
  while (nbytes <= remaining) {
    if (allowance_.compare_exchange_weak(remaining, remaining - nbytes,
                                         std::memory_order_relaxed)) {
      return true;
    }
  }
  return false;
}

// The kernel counts reserved memory as available until it is touched. The exact amount of untouched
// memory is unknown. It is at least the reserved memory minus the resident and swapped-out memory
// of the process.
Result<void> HostMemory::check_available(const Device& device, const AllocationRequest& request) {
  const auto reserved = subtract_or_zero(reserved_.load(std::memory_order_relaxed),
                                         device_owned_.load(std::memory_order_relaxed));
  auto required = std::max(request.nbytes, subtract_or_zero(reserved, bounds_.resident()));
  const auto available = bounds_.available(required + k_allowance);
  if (required > available.bytes && required > request.nbytes) {
    required = std::max(request.nbytes, subtract_or_zero(required, bounds_.swapped()));
  }
  if (required > available.bytes) {
    return refusal(
        device, request,
        formatted(
            "{} are available according to {}, while {} of live allocations were never written to",
            describe_bytes(available.bytes), available.bound,
            describe_bytes(required - request.nbytes)));
  }
  allowance_.store(std::min(k_allowance, available.bytes - required), std::memory_order_relaxed);
  return {};
}

}  // namespace isthmus
