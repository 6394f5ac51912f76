// SPDX-License-Identifier: Apache-2.0
#pragma once
// NVIDIA's driver as a platform, with all devices that it lists. It is never freed, so that events
// and handles never outlive it. Thread-safe.
//
// In a process all devices and the host share one address space, and each device has one primary
// context. The default context is therefore the only one that can be adopted.

#include "backend/cuda/api.hpp"
#include "backend/platform.hpp"

namespace isthmus::cuda {

class Platform final : public isthmus::Platform {
 public:
  // Lists the devices. For each device that cannot be used, appends the reason to `reasons`.
  Platform(PlatformProperties properties, const Api& calls, std::string& reasons);

  [[nodiscard]] Result<Ref<isthmus::Context>> adopt_context(isthmus::Device& member, void* native,
                                                            Owner owner) override;
  [[nodiscard]] Result<Ref<isthmus::Queue>> adopt_queue(isthmus::Device& member, void* native,
                                                        Owner owner) override;

 protected:
  [[nodiscard]] Result<Ref<isthmus::Context>> make_context(
      std::vector<isthmus::Device*> members, isthmus::Platform* platform_owner) override;

 private:
  Api calls_;
};

}  // namespace isthmus::cuda
