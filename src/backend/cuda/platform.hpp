// SPDX-License-Identifier: Apache-2.0
#pragma once
// NVIDIA's driver as a platform, with all devices that it lists. It is never freed, so that events
// and handles never outlive it. Thread-safe.
//
// In one process all devices and the host share one address space, and each device has one context
// of the process. So the default context is the only one that can be adopted.

#include "backend/cuda/api.hpp"
#include "backend/cuda/device.hpp"
#include "backend/platform.hpp"

namespace isthmus::cuda {

class platform final : public isthmus::platform {
 public:
  // Lists the devices. The reasons why others cannot be used are appended to `reasons`.
  platform(platform_properties properties, const api& calls, std::string& reasons);

  [[nodiscard]] const api& calls() const noexcept { return calls_; }
  [[nodiscard]] result<ref<isthmus::context>> adopt_context(isthmus::device& member, void* native,
                                                            owner keep) override;
  [[nodiscard]] result<ref<isthmus::queue>> adopt_queue(isthmus::device& member, void* native,
                                                        owner keep) override;
  // Null if there is no such device.
  [[nodiscard]] device* find(ordinal index) const noexcept;

 protected:
  [[nodiscard]] result<ref<isthmus::context>> make_context(std::vector<isthmus::device*> members,
                                                           isthmus::platform* whole) override;

 private:
  api calls_;
};

}  // namespace isthmus::cuda
