#pragma once
// A simulated device, and how the other files of this folder get from the seam's device to its
// engine.

#include <memory>

#include "backend/device.hpp"
#include "backend/sim/engine.hpp"

namespace isthmus::sim {

class device final : public isthmus::device {
 public:
  device(isthmus::platform& home, const std::string& filter, const options& chosen);

  [[nodiscard]] result<memory_info> memory() const override { return engine_->memory(); }
  [[nodiscard]] sim::engine& engine() const noexcept { return *engine_; }
  // Takes over what `wanted`, made from the options in force, says.
  [[nodiscard]] result<void> configure(std::string_view changes);

 private:
  std::shared_ptr<sim::engine> engine_;
  std::mutex changes_;
  options chosen_;  // guarded by changes_; without the orders, which were carried out
};

// Pre: a device of this back-end.
[[nodiscard]] inline engine& engine_of(const isthmus::device& where) noexcept {
  return static_cast<const device&>(where).engine();
}

}  // namespace isthmus::sim
