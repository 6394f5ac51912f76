// SPDX-License-Identifier: Apache-2.0
#pragma once
// The virtual clock of a device and its copy engines. Computes when each operation starts and ends.
//
// Guarded by the engine's lock. Reads no real clock.

#include <cstdint>

#include "backend/event.hpp"
#include "backend/sim/options.hpp"

namespace isthmus::sim {

// The engine that an operation occupies on the device: none, the copy engine of either direction,
// or the engine that moves bytes within the device.
enum class Route : std::uint8_t { none, to_device, from_device, inside };

// The time that the host takes to submit an operation or to poll an event.
constexpr std::uint64_t k_call_ns = 1'000;

class Timeline {
 public:
  explicit Timeline(const Options& model) { change(model); }
  void change(const Options& model) noexcept;

  [[nodiscard]] std::uint64_t now() const noexcept { return now_; }
  void advance_by(std::uint64_t ns) noexcept;
  // Advances the clock to this time if it is later, as for a host that waits until then.
  void advance_to(std::uint64_t time) noexcept { now_ = time > now_ ? time : now_; }

  // Occupies the engine of `route`, at `ready_ns` or later, and returns the operation's times.
  [[nodiscard]] EventTimes occupy(Route route, std::uint64_t nbytes, std::uint64_t submitted_ns,
                                  std::uint64_t ready_ns) noexcept;

 private:
  [[nodiscard]] std::uint64_t duration(Route route, std::uint64_t nbytes) const noexcept;
  [[nodiscard]] std::uint64_t& free_at(Route route) noexcept;

  std::uint64_t now_ = 0;
  // The time from which each engine is free.
  std::uint64_t to_device_free_ = 0;
  std::uint64_t from_device_free_ = 0;
  std::uint64_t inside_free_ = 0;
  bool one_engine_ = false;
  std::uint64_t bandwidth_ = 1;
  std::uint64_t device_bandwidth_ = 1;
  std::uint64_t latency_ns_ = 0;
};

}  // namespace isthmus::sim
