// SPDX-License-Identifier: Apache-2.0
#pragma once
// A SYCL platform. Never destroyed, so that events and handles cannot outlive it. Thread-safe.

#include "backend/platform.hpp"
#include "backend/sycl/device.hpp"

namespace isthmus::sycl {

class Platform final : public isthmus::Platform {
 public:
  // Lists the devices. For each device that cannot be used, adds the reason to `reasons`.
  Platform(PlatformProperties properties, const Api& calls, OwnedPlatform reference,
           TypeNumbers& numbers, std::vector<std::string>& reasons);

  [[nodiscard]] const Api& calls() const noexcept { return calls_; }
  // These two adopt copies of the references, which SYCL counts.
  [[nodiscard]] Result<Ref<isthmus::Context>> adopt_context(isthmus::Device& member, void* native,
                                                            Owner keep) override;
  [[nodiscard]] Result<Ref<isthmus::Queue>> adopt_queue(isthmus::Device& member, void* native,
                                                        Owner keep) override;
  [[nodiscard]] isthmus::Device* device_of(void* native) const noexcept override;
  // A listed device or a known sub-device (`part`). Null for any other device, including those of
  // other platforms.
  [[nodiscard]] Device* find(DeviceReference reference) const noexcept;

 protected:
  [[nodiscard]] Result<Ref<isthmus::Context>> make_context(std::vector<isthmus::Device*> members,
                                                           isthmus::Platform* whole) override;

 private:
  [[nodiscard]] Result<std::vector<isthmus::Device*>> members_of(ContextReference native) const;
  [[nodiscard]] Result<Ref<isthmus::Context>> copy_context(ContextReference native,
                                                           std::vector<isthmus::Device*> members,
                                                           Owner keep);
  // Returns `member` itself or a sub-device of it. A sub-device that is seen for the first time
  // becomes a device, which is not listed. WRONG_CONTEXT for any other device.
  [[nodiscard]] Result<Device*> device_or_part(Device& member, DeviceReference reference);
  [[nodiscard]] Device* find_part_locked(DeviceReference reference) const noexcept;
  [[nodiscard]] bool is_part_of(const Device& whole, DeviceReference reference) const noexcept;

  Api calls_;
  OwnedPlatform reference_;
  mutable std::mutex parts_lock_;
  // Guarded by parts_lock_.
  std::vector<std::unique_ptr<Device>> parts_;
};

}  // namespace isthmus::sycl
