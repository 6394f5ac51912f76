// SPDX-License-Identifier: Apache-2.0
#include "backend/sim/device.hpp"

#include "backend/platform.hpp"
#include "core/text.hpp"

namespace isthmus::sim {
namespace {

std::uint64_t capabilities(const Options& chosen) noexcept {
  std::uint64_t able = chosen.kinds | ISTHMUS_CAN_PREFETCH | ISTHMUS_CAN_ADVISE |
                       ISTHMUS_CAN_PROFILE | ISTHMUS_CAN_TELL_FREE_MEMORY;
  if (chosen.usm) {
    able |= ISTHMUS_CAN_USM;
  }
  if (chosen.remap) {
    able |= ISTHMUS_CAN_REMAP;
  }
  if (chosen.wait_for_host) {
    // A function runs between two fences, of which the second waits for the host.
    able |= ISTHMUS_CAN_WAIT_FOR_HOST | ISTHMUS_CAN_RUN_FUNCTIONS;
  }
  return able;
}

std::string lacks(const Options& chosen) {
  std::vector<std::string_view> missing;
  if (!chosen.usm) {
    missing.emplace_back("no true USM (usm=0)");
  }
  if (chosen.kinds != k_all_kinds) {
    missing.emplace_back("not every kind of memory (kinds=)");
  }
  if (!chosen.wait_for_host) {
    missing.emplace_back("queues cannot wait for the host (wait_for_host=0): callers wait instead");
  }
  if (!chosen.remap) {
    missing.emplace_back("memory cannot move (remap=0)");
  }
  return joined(missing, "; ");
}

DeviceProperties describe(const std::string& filter, const Options& chosen) {
  DeviceProperties told;
  told.filter = filter;
  told.name = "Simulated device";
  told.vendor = "Isthmus";
  told.driver_version = "1";
  told.type = ISTHMUS_DEVICE_GPU;
  told.compute_units = 1;
  told.copy_engines = static_cast<std::uint32_t>(chosen.engines);
  told.capabilities = capabilities(chosen);
  told.memory_bytes = chosen.capacity;
  told.max_allocation_bytes = chosen.capacity;
  told.base_alignment = 256;
  told.max_alignment = std::uint64_t{2} << 20;
  told.lacks = lacks(chosen);
  return told;
}

// Removes the orders, which are carried out once. The rest describes the device.
Options without_orders(Options chosen) {
  chosen.reseed = false;
  chosen.clear_faults = false;
  chosen.faults.clear();
  chosen.lost_after.reset();
  return chosen;
}

}  // namespace

Device::Device(isthmus::Platform& platform, const std::string& filter, const Options& chosen)
    : isthmus::Device{platform, describe(filter, chosen)},
      engine_{std::make_shared<sim::Engine>(filter, chosen)},
      chosen_{without_orders(chosen)} {}

Result<void> Device::configure(std::string_view changes) {
  const std::lock_guard hold{changes_};
  auto wanted = parse_options(changes, Source::change, chosen_);
  if (!wanted) {
    return wanted.take_error();
  }
  engine_->change(*wanted);
  chosen_ = without_orders(*std::move(wanted));
  return {};
}

}  // namespace isthmus::sim
