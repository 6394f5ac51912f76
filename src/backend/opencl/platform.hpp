// SPDX-License-Identifier: Apache-2.0
#pragma once
// A platform: one OpenCL driver. It is never freed, so that events and handles never outlive it.
// Thread-safe.

#include "backend/opencl/api.hpp"
#include "backend/opencl/device.hpp"
#include "backend/platform.hpp"

namespace isthmus::opencl {

class platform final : public isthmus::platform {
 public:
  // Lists the devices. The reasons why others cannot be used are appended to `reasons`.
  platform(platform_properties properties, const api& calls, platform_handle handle,
           type_numbers& numbers, std::vector<std::string>& reasons);

  [[nodiscard]] const api& calls() const noexcept { return calls_; }
  [[nodiscard]] result<ref<isthmus::context>> adopt_context(isthmus::device& member, void* native,
                                                            owner keep) override;
  [[nodiscard]] result<ref<isthmus::context>> share_context(isthmus::device& member,
                                                            isthmus::context& of) override;
  [[nodiscard]] result<ref<isthmus::queue>> adopt_queue(isthmus::device& member, void* native,
                                                        owner keep) override;
  // Null for a device of another platform, and for a sub-device.
  [[nodiscard]] isthmus::device* find(device_handle handle) const noexcept;

 protected:
  [[nodiscard]] result<ref<isthmus::context>> make_context(std::vector<isthmus::device*> members,
                                                           isthmus::platform* whole) override;

 private:
  [[nodiscard]] result<std::vector<isthmus::device*>> members_of(context_handle native) const;

  api calls_;
  platform_handle handle_;
};

// "" if the driver does not report it.
[[nodiscard]] std::string platform_text(const api& calls, platform_handle handle, number what);

}  // namespace isthmus::opencl
