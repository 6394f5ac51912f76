// SPDX-License-Identifier: Apache-2.0
#pragma once
// A SYCL platform. Never destroyed, so that events and handles cannot outlive it. Thread-safe.

#include "backend/platform.hpp"
#include "backend/sycl/device.hpp"

namespace isthmus::sycl {

class platform final : public isthmus::platform {
 public:
  // Lists the devices. For each device that cannot be used, adds the reason to `reasons`.
  platform(platform_properties properties, const api& calls, owned_platform reference,
           type_numbers& numbers, std::vector<std::string>& reasons);

  [[nodiscard]] const api& calls() const noexcept { return calls_; }
  // These two adopt copies of the references, which SYCL counts.
  [[nodiscard]] result<ref<isthmus::context>> adopt_context(isthmus::device& member, void* native,
                                                            owner keep) override;
  [[nodiscard]] result<ref<isthmus::queue>> adopt_queue(isthmus::device& member, void* native,
                                                        owner keep) override;
  [[nodiscard]] isthmus::device* device_of(void* native) const noexcept override;
  // A listed device or a known sub-device (`part`). Null for any other device, including those of
  // other platforms.
  [[nodiscard]] device* find(device_reference reference) const noexcept;

 protected:
  [[nodiscard]] result<ref<isthmus::context>> make_context(std::vector<isthmus::device*> members,
                                                           isthmus::platform* whole) override;

 private:
  [[nodiscard]] result<std::vector<isthmus::device*>> members_of(context_reference native) const;
  [[nodiscard]] result<ref<isthmus::context>> copy_context(context_reference native,
                                                           std::vector<isthmus::device*> members,
                                                           owner keep);
  // Returns `member` itself or a sub-device of it. A sub-device that is seen for the first time
  // becomes a device, which is not listed. WRONG_CONTEXT for any other device.
  [[nodiscard]] result<device*> device_or_part(device& member, device_reference reference);
  [[nodiscard]] device* find_part_locked(device_reference reference) const noexcept;
  [[nodiscard]] bool is_part_of(const device& whole, device_reference reference) const noexcept;

  api calls_;
  owned_platform reference_;
  mutable std::mutex parts_lock_;
  // Guarded by parts_lock_.
  std::vector<std::unique_ptr<device>> parts_;
};

}  // namespace isthmus::sycl
