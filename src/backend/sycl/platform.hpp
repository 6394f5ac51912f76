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
  // Null for a device of another platform, or a part of a device.
  [[nodiscard]] device* find(device_reference reference) const noexcept;

 protected:
  [[nodiscard]] result<ref<isthmus::context>> make_context(std::vector<isthmus::device*> members,
                                                           isthmus::platform* whole) override;

 private:
  [[nodiscard]] result<std::vector<isthmus::device*>> members_of(context_reference native) const;

  api calls_;
  owned_platform reference_;
};

}  // namespace isthmus::sycl
