// SPDX-License-Identifier: Apache-2.0
#include "backend/sim/timeline.hpp"

#include <algorithm>
#include <cmath>

namespace isthmus::sim {
namespace {

// 146 years, which no test reaches. The sum of two such times is below 2^64.
constexpr std::uint64_t k_end_of_time = std::uint64_t{1} << 62;

std::uint64_t sum(std::uint64_t a, std::uint64_t b) noexcept {
  return std::min(a + b, k_end_of_time);
}

std::uint64_t transfer_ns(std::uint64_t nbytes, std::uint64_t bytes_per_second) noexcept {
  const double ns =
      std::ceil(static_cast<double>(nbytes) * 1e9 / static_cast<double>(bytes_per_second));
  return ns >= static_cast<double>(k_end_of_time) ? k_end_of_time : static_cast<std::uint64_t>(ns);
}

}  // namespace

void Timeline::change(const Options& model) noexcept {
  one_engine_ = model.engines == 1;
  bandwidth_ = model.bandwidth;
  device_bandwidth_ = model.device_bandwidth;
  latency_ns_ = model.latency_ns;
}

void Timeline::advance_by(std::uint64_t ns) noexcept { now_ = sum(now_, ns); }

std::uint64_t Timeline::duration(Route route, std::uint64_t nbytes) const noexcept {
  switch (route) {
    case Route::none: return 0;
    case Route::inside: return sum(latency_ns_, transfer_ns(nbytes, device_bandwidth_));
    default: return sum(latency_ns_, transfer_ns(nbytes, bandwidth_));
  }
}

std::uint64_t& Timeline::free_at(Route route) noexcept {
  if (route == Route::inside) {
    return inside_free_;
  }
  return route == Route::from_device && !one_engine_ ? from_device_free_ : to_device_free_;
}

EventTimes Timeline::occupy(Route route, std::uint64_t nbytes, std::uint64_t submitted_ns,
                            std::uint64_t ready_ns) noexcept {
  auto start_ns = std::max(submitted_ns, ready_ns);
  if (route == Route::none) {
    return {submitted_ns, start_ns, start_ns};
  }
  auto& engine = free_at(route);
  start_ns = std::max(start_ns, engine);
  engine = sum(start_ns, duration(route, nbytes));
  return {submitted_ns, start_ns, engine};
}

}  // namespace isthmus::sim
