// SPDX-License-Identifier: Apache-2.0
#pragma once
// The interface of simulated devices for the layers above. Thread-safe.

#include <cstdint>
#include <string_view>

#include "backend/platform.hpp"

namespace isthmus {

struct simulation_state {
  std::uint64_t clock_ns = 0;
  std::uint64_t device_bytes = 0;  // live allocations of device kind
  std::uint64_t host_bytes = 0;    // live allocations of the other kinds
};

// A new simulated device on a platform of its own, which lives as long as the device is referenced.
[[nodiscard]] result<ref<device>> create_simulated_device(std::string_view options);
// Errors of the following: INVALID_ARGUMENT if the device is not simulated or the option is
// unknown.
[[nodiscard]] result<void> configure_simulated_device(device& target, std::string_view options);
[[nodiscard]] result<std::uint64_t> simulated_calls(const device& target, std::string_view kind);
[[nodiscard]] result<simulation_state> state_of_simulated_device(const device& target);

}  // namespace isthmus
