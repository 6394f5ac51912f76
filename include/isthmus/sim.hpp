// SPDX-License-Identifier: Apache-2.0
// Simulated devices for tests: with a capacity, injected faults, and effects that become visible as
// late as ordering allows, so that a missing wait shows as wrong data. docs/sim.md lists the
// options.
//
//   isthmus::sim_device device("capacity=64MiB,fail=copy:3");
//   isthmus::queue queue(device);
//
// Cost: device memory is host memory with page protection. Thread-safe.
#pragma once

#include <isthmus/experimental.h>
#include <isthmus/device.hpp>

#include <chrono>

namespace isthmus {
inline namespace v1 {

// The state of a simulated device.
struct sim_state {
  std::chrono::nanoseconds clock{};  // virtual time
  std::uint64_t device_bytes = 0;    // device memory allocated now
  // Other memory allocated now.
  std::uint64_t host_bytes = 0;
};

// A new simulated device, on a new platform. Both live until the last reference is dropped.
class sim_device : public device {
 public:
  explicit sim_device(const std::string& options = "") : device(create(options)) {}

  // Changes the options that can change during the device's lifetime: those of faults, device loss,
  // effects, bandwidths and latency. Throws invalid_argument for other options.
  void configure(const std::string& options) const {
    detail::check(isthmus_sim_configure(require(), options.c_str()));
  }
  // Number of driver calls of one kind so far: "allocate", "copy", ...; "any" for all.
  [[nodiscard]] std::uint64_t calls(const std::string& kind = "any") const {
    std::uint64_t count = 0;
    detail::check(isthmus_sim_calls(require(), kind.c_str(), &count));
    return count;
  }
  [[nodiscard]] sim_state state() const {
    const auto raw = detail::read<isthmus_sim_info_t>(isthmus_sim_info, require());
    const auto clock = static_cast<std::chrono::nanoseconds::rep>(raw.clock_ns);
    return {std::chrono::nanoseconds(clock), raw.device_bytes, raw.host_bytes};
  }

 private:
  static isthmus_device_t* create(const std::string& options) {
    isthmus_device_t* raw = nullptr;
    detail::check(isthmus_sim_create(options.c_str(), &raw));
    return raw;
  }
};

}  // namespace v1
}  // namespace isthmus
