// SPDX-License-Identifier: Apache-2.0
#include "tracking/choice.hpp"

#include <atomic>
#include <cstdint>
#include <cstdlib>

#include "os/virtual_memory.hpp"
#include "tracking/page_support.hpp"

namespace isthmus::tracking {
namespace {

constexpr std::uint8_t k_automatic = 0xff;

std::atomic<std::uint8_t> forced{k_automatic};

// Reads the environment once: later changes by the program are intended for its child processes.
Result<std::optional<TrackingMechanism>> requested_mechanism() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe)
  static const auto requested = parse_mechanism(std::getenv("ISTHMUS_TRACKING"));
  const auto mechanism = forced.load(std::memory_order_relaxed);
  if (mechanism != k_automatic) {
    return std::optional{static_cast<TrackingMechanism>(mechanism)};
  }
  return requested;
}

}  // namespace

Result<TrackingMechanism> mechanism_for(std::size_t nbytes) {
  auto requested = requested_mechanism();
  ISTHMUS_TRY(requested);
  if (nbytes < k_min_paged_bytes) {
    return TrackingMechanism::bytes;
  }
  if (*requested == TrackingMechanism::pages) {
    ISTHMUS_TRY(pages_are_reported());
  }
  return requested->value_or(pages_are_reported() ? TrackingMechanism::pages
                                                  : TrackingMechanism::hashes);
}

ActiveTracking active_mechanism() {
  auto chosen = mechanism_for(os::k_huge_page);
  if (!chosen) {
    return {TrackingMechanism::hashes, 64 << 10, chosen.failure().message()};
  }
  switch (*chosen) {
    case TrackingMechanism::pages: return {*chosen, reported_granule(), ""};
    case TrackingMechanism::bytes: return {*chosen, 1, "requested"};
    case TrackingMechanism::hashes: break;
  }
  auto status = pages_are_reported();
  return {*chosen, 64 << 10, status ? "requested" : status.failure().message()};
}

Result<void> force(std::optional<TrackingMechanism> mechanism) {
  if (mechanism == TrackingMechanism::pages) {
    ISTHMUS_TRY(pages_are_reported());
  }
  forced.store(mechanism ? static_cast<std::uint8_t>(*mechanism) : k_automatic,
               std::memory_order_relaxed);
  return {};
}

}  // namespace isthmus::tracking
