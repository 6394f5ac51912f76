#pragma once
// NVIDIA's driver as a platform: all devices that it lists. Lives for ever, so that events and
// handles never outlive it.
//
// One process has one address space for all of them and the host, and one context of each: so the
// default context is all that there is to adopt.

#include "backend/cuda/api.hpp"
#include "backend/cuda/device.hpp"
#include "backend/platform.hpp"

namespace isthmus::cuda {

class platform final : public isthmus::platform {
 public:
  // Lists the devices; those that cannot be used leave their reason.
  platform(platform_properties properties, const api& calls, std::string& reasons);

  [[nodiscard]] const api& calls() const noexcept { return calls_; }
  [[nodiscard]] result<ref<isthmus::context>> adopt_context(isthmus::device& member, void* native,
                                                            owner keep) override;
  [[nodiscard]] result<ref<isthmus::queue>> adopt_queue(isthmus::device& member, void* native,
                                                        owner keep) override;
  // Null if there is none.
  [[nodiscard]] device* find(ordinal index) const noexcept;

 protected:
  [[nodiscard]] result<ref<isthmus::context>> make_context(std::vector<isthmus::device*> members,
                                                           isthmus::platform* whole) override;

 private:
  api calls_;
};

}  // namespace isthmus::cuda
