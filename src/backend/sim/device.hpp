// SPDX-License-Identifier: Apache-2.0
#pragma once
// A simulated device, and access to its engine for the other files of this folder. Thread-safe.

#include <memory>

#include "backend/device.hpp"
#include "backend/sim/engine.hpp"
#include "core/mutex.hpp"
#include "core/thread_safety.hpp"

namespace isthmus::sim {

class Device final : public isthmus::Device {
 public:
  Device(isthmus::Platform& platform, const std::string& filter, const Options& options);

  [[nodiscard]] Result<MemoryInfo> memory() const override { return engine_->memory(); }
  [[nodiscard]] sim::Engine& engine() const noexcept { return *engine_; }
  // Applies `changes` to the current options. Thread-safe.
  [[nodiscard]] Result<void> configure(std::string_view changes);

 private:
  std::shared_ptr<sim::Engine> engine_;
  Mutex options_lock_;
  Options options_ ISTHMUS_GUARDED_BY(options_lock_);  // without one-time options
};

// `device` belongs to this backend.
[[nodiscard]] inline Engine& engine_of(const isthmus::Device& device) noexcept {
  return static_cast<const Device&>(device).engine();
}

}  // namespace isthmus::sim
