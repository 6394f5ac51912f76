// SPDX-License-Identifier: Apache-2.0
#include "backend/simulation.hpp"

#include "backend/sim/device.hpp"
#include "backend/sim/platform.hpp"

namespace isthmus {
namespace {

// Numbers the private devices for messages. Filters do not find them.
std::atomic<std::uint64_t> private_devices{0};

error not_simulated(const device& target) {
  return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "{} is not a simulated device",
              target.properties().filter);
}

const sim::device* simulated(const device& target) noexcept {
  return dynamic_cast<const sim::device*>(&target);
}

}  // namespace

result<ref<device>> create_simulated_device(std::string_view options) {
  auto chosen = sim::parse_options(options, sim::source::creation);
  if (!chosen) {
    return chosen.take_error();
  }
  const auto number = private_devices.fetch_add(1, std::memory_order_relaxed);
  const auto home = make_ref<sim::platform>(*chosen, "sim:private:", number);
  return ref<device>{home->devices().front().get()};
}

result<void> configure_simulated_device(device& target, std::string_view options) {
  auto* found = dynamic_cast<sim::device*>(&target);
  if (found == nullptr) {
    return not_simulated(target);
  }
  return found->configure(options);
}

result<std::uint64_t> simulated_calls(const device& target, std::string_view kind) {
  const auto* found = simulated(target);
  if (found == nullptr) {
    return not_simulated(target);
  }
  const auto wanted = sim::find_call(kind);
  if (!wanted) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "there is no kind of call '{}': use {} or violation", kind.substr(0, 60),
                sim::call_names());
  }
  return found->engine().calls(*wanted);
}

result<simulation_state> state_of_simulated_device(const device& target) {
  const auto* found = simulated(target);
  if (found == nullptr) {
    return not_simulated(target);
  }
  return found->engine().state();
}

}  // namespace isthmus
