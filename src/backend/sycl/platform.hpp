// SPDX-License-Identifier: Apache-2.0
#pragma once
// A SYCL platform. Never destroyed, so that events and handles cannot outlive it. Thread-safe.

#include "backend/platform.hpp"
#include "backend/sycl/device.hpp"
#include "core/mutex.hpp"
#include "core/thread_safety.hpp"

namespace isthmus::sycl {

class Platform final : public isthmus::Platform {
 public:
  // Lists the devices. For each device that cannot be used, appends the reason to `reasons`.
  Platform(PlatformProperties properties, const Api& calls, OwnedPlatform reference,
           TypeNumbers& numbers, std::vector<std::string>& reasons);

  [[nodiscard]] const Api& calls() const noexcept { return calls_; }
  // These two adopt copies of the references, which SYCL counts.
  [[nodiscard]] Result<Ref<isthmus::Context>> adopt_context(isthmus::Device& member, void* native,
                                                            Owner owner) override;
  [[nodiscard]] Result<Ref<isthmus::Queue>> adopt_queue(isthmus::Device& member, void* native,
                                                        Owner owner) override;
  [[nodiscard]] isthmus::Device* device_of(void* native) const noexcept override;
  // A listed device or a known sub-device (`find_or_add_sub_device`). Null for any other device,
  // including those of other platforms.
  [[nodiscard]] Device* find(DeviceReference reference) const noexcept;

 protected:
  [[nodiscard]] Result<Ref<isthmus::Context>> make_context(
      std::vector<isthmus::Device*> members, isthmus::Platform* owning_platform) override;

 private:
  [[nodiscard]] Result<std::vector<isthmus::Device*>> members_of(ContextReference native) const;
  [[nodiscard]] Result<Ref<isthmus::Context>> copy_context(ContextReference native,
                                                           std::vector<isthmus::Device*> members,
                                                           Owner owner);
  // Returns `member` itself or a sub-device of it. The first use of a sub-device creates a Device
  // object for it, which is not listed. WRONG_CONTEXT for any other device.
  [[nodiscard]] Result<Device*> find_or_add_sub_device(Device& member, DeviceReference reference);
  [[nodiscard]] Device* find_sub_device_locked(DeviceReference reference) const noexcept
      ISTHMUS_REQUIRES(sub_devices_lock_);
  [[nodiscard]] bool is_sub_device_of(const Device& parent,
                                      DeviceReference reference) const noexcept;

  Api calls_;
  OwnedPlatform reference_;
  mutable Mutex sub_devices_lock_;
  std::vector<std::unique_ptr<Device>> sub_devices_ ISTHMUS_GUARDED_BY(sub_devices_lock_);
};

}  // namespace isthmus::sycl
