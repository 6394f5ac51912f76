#pragma once
// Simulated devices that were made together.

#include "backend/platform.hpp"
#include "backend/sim/options.hpp"

namespace isthmus::sim {

class platform final : public isthmus::platform {
 public:
  // Devices 0 to chosen.devices - 1 get the filters `prefix` + number, from `first` on.
  platform(const options& chosen, const std::string& prefix, std::uint64_t first);
  // Operations that nobody waited for end before the devices go.
  ~platform() override;

 protected:
  [[nodiscard]] result<ref<isthmus::context>> make_context(std::vector<isthmus::device*> members,
                                                           isthmus::platform* whole) override;
};

}  // namespace isthmus::sim
