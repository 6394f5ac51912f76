// SPDX-License-Identifier: Apache-2.0
#pragma once
// A simulated device, and access to its engine for the other files of this folder.

#include <memory>

#include "backend/device.hpp"
#include "backend/sim/engine.hpp"

namespace isthmus::sim {

class device final : public isthmus::device {
 public:
  device(isthmus::platform& home, const std::string& filter, const options& chosen);

  [[nodiscard]] result<memory_info> memory() const override { return engine_->memory(); }
  [[nodiscard]] sim::engine& engine() const noexcept { return *engine_; }
  // Applies `changes` to the options in force. Thread-safe.
  [[nodiscard]] result<void> configure(std::string_view changes);

 private:
  std::shared_ptr<sim::engine> engine_;
  std::mutex changes_;
  options chosen_;  // guarded by changes_; without orders
};

// Pre: a device of this backend.
[[nodiscard]] inline engine& engine_of(const isthmus::device& where) noexcept {
  return static_cast<const device&>(where).engine();
}

}  // namespace isthmus::sim
