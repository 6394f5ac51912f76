// SPDX-License-Identifier: Apache-2.0
#pragma once
// The interface of simulated devices for the layers above. Thread-safe.

#include <cstdint>
#include <string_view>

#include "backend/platform.hpp"

namespace isthmus {

struct SimulationState {
  std::uint64_t clock_ns = 0;
  std::uint64_t device_bytes = 0;  // live allocations of device kind
  std::uint64_t host_bytes = 0;    // live allocations of the other kinds
};

// Creates a simulated device on a separate platform, which exists as long as the device is
// referenced.
[[nodiscard]] Result<Ref<Device>> create_simulated_device(std::string_view options);
// The functions below fail with INVALID_ARGUMENT if the device is not simulated, or if an option or
// a kind of call is unknown.
[[nodiscard]] Result<void> configure_simulated_device(Device& target, std::string_view options);
[[nodiscard]] Result<std::uint64_t> simulated_calls(const Device& target, std::string_view kind);
[[nodiscard]] Result<SimulationState> state_of_simulated_device(const Device& target);

}  // namespace isthmus
