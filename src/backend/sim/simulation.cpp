// SPDX-License-Identifier: Apache-2.0
#include "backend/simulation.hpp"

#include "backend/sim/device.hpp"
#include "backend/sim/platform.hpp"

namespace isthmus {
namespace {

// Numbers the private devices for messages. Filter strings cannot select these devices.
std::atomic<std::uint64_t> private_devices{0};

Error not_simulated(const Device& target) {
  return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "{} is not a simulated device",
              target.properties().filter);
}

const sim::Device* simulated(const Device& target) noexcept {
  return dynamic_cast<const sim::Device*>(&target);
}

}  // namespace

Result<Ref<Device>> create_simulated_device(std::string_view options) {
  auto parsed = sim::parse_options(options, sim::Source::creation);
  if (!parsed) {
    return parsed.take_error();
  }
  const auto number = private_devices.fetch_add(1, std::memory_order_relaxed);
  const auto platform = make_ref<sim::Platform>(*parsed, "sim:private:", number);
  return Ref<Device>{platform->devices().front().get()};
}

Result<void> configure_simulated_device(Device& target, std::string_view options) {
  auto* found = dynamic_cast<sim::Device*>(&target);
  if (found == nullptr) {
    return not_simulated(target);
  }
  return found->configure(options);
}

Result<std::uint64_t> simulated_calls(const Device& target, std::string_view kind) {
  const auto* found = simulated(target);
  if (found == nullptr) {
    return not_simulated(target);
  }
  const auto call = sim::find_call(kind);
  if (!call) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "there is no kind of call '{}': use {} or violation", kind.substr(0, 60),
                sim::call_names());
  }
  return found->engine().calls(*call);
}

Result<SimulationState> state_of_simulated_device(const Device& target) {
  const auto* found = simulated(target);
  if (found == nullptr) {
    return not_simulated(target);
  }
  return found->engine().state();
}

}  // namespace isthmus
