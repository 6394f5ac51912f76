#pragma once
// A platform: one of SYCL's. Lives for ever, so that events and handles never outlive it.

#include "backend/platform.hpp"
#include "backend/sycl/device.hpp"

namespace isthmus::sycl {

class platform final : public isthmus::platform {
 public:
  // Lists the devices; those that cannot be used leave their reason.
  platform(platform_properties properties, const api& calls, owned_platform reference,
           type_numbers& numbers, std::vector<std::string>& reasons);

  [[nodiscard]] const api& calls() const noexcept { return calls_; }
  // Of copies of these references, which have SYCL's own count.
  [[nodiscard]] result<ref<isthmus::context>> adopt_context(isthmus::device& member, void* native,
                                                            owner keep) override;
  [[nodiscard]] result<ref<isthmus::queue>> adopt_queue(isthmus::device& member, void* native,
                                                        owner keep) override;
  [[nodiscard]] isthmus::device* device_of(void* native) const noexcept override;
  // One that is listed, or a part that is known. Null for others, and of another platform.
  [[nodiscard]] device* find(device_reference reference) const noexcept;

 protected:
  [[nodiscard]] result<ref<isthmus::context>> make_context(std::vector<isthmus::device*> members,
                                                           isthmus::platform* whole) override;

 private:
  [[nodiscard]] result<std::vector<isthmus::device*>> members_of(context_reference native) const;
  [[nodiscard]] result<ref<isthmus::context>> copy_context(context_reference native,
                                                           std::vector<isthmus::device*> members,
                                                           owner keep);
  // `member` itself or a part of it, which may have been seen for the first time: from then on it
  // is a device, but none that is listed. WRONG_CONTEXT for others.
  [[nodiscard]] result<device*> device_or_part(device& member, device_reference reference);
  [[nodiscard]] device* find_part_locked(device_reference reference) const noexcept;
  [[nodiscard]] bool is_part_of(const device& whole, device_reference reference) const noexcept;

  api calls_;
  owned_platform reference_;
  mutable std::mutex parts_lock_;
  std::vector<std::unique_ptr<device>> parts_;
};

}  // namespace isthmus::sycl
