// SPDX-License-Identifier: Apache-2.0
#pragma once
// A platform: one OpenCL driver. It is never freed, so that events and handles never outlive it.
// Thread-safe.

#include "backend/opencl/api.hpp"
#include "backend/opencl/device.hpp"
#include "backend/opencl/driver.hpp"
#include "backend/platform.hpp"

namespace isthmus::opencl {

class Platform final : public isthmus::Platform {
 public:
  // Lists the devices. For each device that cannot be used, appends the reason to `reasons`.
  Platform(PlatformProperties properties, const Api& calls, cl_platform_id handle,
           TypeNumbers& numbers, std::vector<std::string>& reasons);

  [[nodiscard]] const Api& calls() const noexcept { return driver_.calls; }
  [[nodiscard]] Result<Ref<isthmus::Context>> adopt_context(isthmus::Device& member, void* native,
                                                            Owner owner) override;
  [[nodiscard]] Result<Ref<isthmus::Context>> share_context(isthmus::Device& member,
                                                            isthmus::Context& context) override;
  [[nodiscard]] Result<Ref<isthmus::Queue>> adopt_queue(isthmus::Device& member, void* native,
                                                        Owner owner) override;

 protected:
  [[nodiscard]] Result<Ref<isthmus::Context>> make_context(
      std::vector<isthmus::Device*> members, isthmus::Platform* owning_platform) override;

 private:
  [[nodiscard]] Result<std::vector<isthmus::Device*>> members_of(cl_context native) const;

  Driver driver_;
  cl_platform_id handle_;
};

// Returns "" if the driver does not report the property.
[[nodiscard]] std::string platform_text(const Api& calls, cl_platform_id handle,
                                        cl_platform_info property);

}  // namespace isthmus::opencl
