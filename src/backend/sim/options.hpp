// SPDX-License-Identifier: Apache-2.0
#pragma once
// The options of a simulated device: "capacity=64MiB,fail=copy:3". docs/sim.md describes all of
// them.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "backend/device.hpp"
#include "backend/sim/calls.hpp"
#include "core/status.hpp"

namespace isthmus::sim {

// When an operation's bytes move: as soon as its dependencies allow, only on demand, or at either
// time, chosen at random.
enum class Effect : std::uint8_t { early, late, random };

constexpr std::uint64_t k_all_kinds =
    ISTHMUS_CAN_DEVICE_KIND | ISTHMUS_CAN_SHARED_KIND | ISTHMUS_CAN_HOST_KIND;

struct Options {
  // Fixed for the lifetime of the device.
  std::uint64_t devices = 1;
  std::uint64_t capacity = std::uint64_t{1} << 30;
  std::uint64_t engines = 2;
  std::uint64_t kinds = k_all_kinds;  // ISTHMUS_CAN_*_KIND
  bool wait_for_host = true;
  bool usm = true;
  bool remap = true;
  // Options that may change during the lifetime.
  std::uint64_t bandwidth = 16'000'000'000;  // bytes per second between host and device
  std::uint64_t device_bandwidth = 400'000'000'000;
  std::uint64_t latency_ns = 5'000;
  std::uint64_t seed = 1;
  bool reseed = true;  // a seed was specified, or the device is new
  Effect effect = Effect::early;
  // One-time options: applied once, not stored.
  bool clear_faults = false;
  std::vector<Fault> faults;
  std::optional<std::uint64_t> lost_after;
};

// The source of the text, which determines the allowed options: only `environment` allows
// `devices`, and `change` allows only the options that may change.
enum class Source : std::uint8_t { environment, creation, change };

// `base` holds the values of options that the text does not mention. The message of
// INVALID_ARGUMENT contains the key, the value and the allowed values.
[[nodiscard]] Result<Options> parse_options(std::string_view text, Source source,
                                            Options base = {});

}  // namespace isthmus::sim
