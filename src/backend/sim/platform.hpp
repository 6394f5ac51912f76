// SPDX-License-Identifier: Apache-2.0
#pragma once
// A platform of simulated devices. Thread-safe.

#include "backend/platform.hpp"
#include "backend/sim/options.hpp"

namespace isthmus::sim {

class platform final : public isthmus::platform {
 public:
  // Creates `chosen.devices` devices. Their filters are `prefix` and a number, from `first` on.
  platform(const options& chosen, const std::string& prefix, std::uint64_t first);
  // Ends the operations that no thread waited for.
  ~platform() override;

 protected:
  [[nodiscard]] result<ref<isthmus::context>> make_context(std::vector<isthmus::device*> members,
                                                           isthmus::platform* whole) override;
};

}  // namespace isthmus::sim
