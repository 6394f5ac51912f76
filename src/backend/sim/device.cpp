// SPDX-License-Identifier: Apache-2.0
#include "backend/sim/device.hpp"

#include "backend/platform.hpp"
#include "core/lock_guard.hpp"
#include "core/text.hpp"

namespace isthmus::sim {
namespace {

std::uint64_t capabilities(const Options& options) noexcept {
  std::uint64_t flags = options.kinds | ISTHMUS_CAN_PREFETCH | ISTHMUS_CAN_ADVISE |
                        ISTHMUS_CAN_PROFILE | ISTHMUS_CAN_QUERY_FREE_MEMORY;
  if (options.usm) {
    flags |= ISTHMUS_CAN_USM;
  }
  if (options.remap) {
    flags |= ISTHMUS_CAN_REMAP;
  }
  if (options.wait_for_host) {
    // A host function runs between two fences, of which the second one waits for the host.
    flags |= ISTHMUS_CAN_WAIT_FOR_HOST | ISTHMUS_CAN_RUN_FUNCTIONS;
  }
  return flags;
}

std::string describe_limitations(const Options& options) {
  std::vector<std::string_view> missing;
  if (!options.usm) {
    missing.emplace_back("no true USM (usm=0)");
  }
  if (options.kinds != k_all_kinds) {
    missing.emplace_back("not every kind of memory (kinds=)");
  }
  if (!options.wait_for_host) {
    missing.emplace_back("queues cannot wait for the host (wait_for_host=0): callers wait instead");
  }
  if (!options.remap) {
    missing.emplace_back("memory cannot move (remap=0)");
  }
  return joined(missing, "; ");
}

DeviceProperties describe(const std::string& filter, const Options& options) {
  DeviceProperties properties;
  properties.filter = filter;
  properties.name = "Simulated device";
  properties.vendor = "Isthmus";
  properties.driver_version = "1";
  properties.type = ISTHMUS_DEVICE_GPU;
  properties.compute_units = 1;
  properties.copy_engines = static_cast<std::uint32_t>(options.engines);
  properties.capabilities = capabilities(options);
  properties.memory_bytes = options.capacity;
  properties.max_allocation_bytes = options.capacity;
  properties.base_alignment = 256;
  properties.max_alignment = std::uint64_t{2} << 20;
  properties.limitations = describe_limitations(options);
  return properties;
}

// Removes the options that are applied once and not stored.
Options without_one_time_options(Options options) {
  options.reseed = false;
  options.clear_faults = false;
  options.faults.clear();
  options.lost_after.reset();
  return options;
}

}  // namespace

Device::Device(isthmus::Platform& platform, const std::string& filter, const Options& options)
    : isthmus::Device{platform, describe(filter, options)},
      engine_{std::make_shared<sim::Engine>(filter, options)},
      options_{without_one_time_options(options)} {}

Result<void> Device::configure(std::string_view changes) {
  const LockGuard hold{options_lock_};
  auto options = parse_options(changes, Source::change, options_);
  if (!options) {
    return options.take_error();
  }
  engine_->change(*options);
  options_ = without_one_time_options(*std::move(options));
  return {};
}

}  // namespace isthmus::sim
