// SPDX-License-Identifier: Apache-2.0
#pragma once
// A platform of simulated devices. Thread-safe.

#include "backend/platform.hpp"
#include "backend/sim/options.hpp"

namespace isthmus::sim {

class Platform final : public isthmus::Platform {
 public:
  // Creates `options.devices` devices. Their filters are `prefix` and a number, from `first` on.
  Platform(const Options& options, const std::string& prefix, std::uint64_t first);
  // Completes the operations that no thread has waited for.
  ~Platform() override;

 protected:
  [[nodiscard]] Result<Ref<isthmus::Context>> make_context(
      std::vector<isthmus::Device*> members, isthmus::Platform* owning_platform) override;
};

}  // namespace isthmus::sim
