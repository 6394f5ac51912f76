#pragma once
// A platform: one vendor's driver, or the host. Owns its devices and their default context.

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "backend/context.hpp"
#include "backend/device.hpp"
#include "core/owner.hpp"

namespace isthmus {

struct platform_properties {
  std::string backend;  // "host", "sim", "cuda", "opencl", "sycl"
  std::string name;
  std::string vendor;
  std::string version;
  std::string library;
};

class queue;

class platform : public ref_counted {
 public:
  explicit platform(platform_properties properties) : properties_{std::move(properties)} {}
  ~platform() override;

  [[nodiscard]] const platform_properties& properties() const noexcept { return properties_; }
  [[nodiscard]] std::span<const std::unique_ptr<device>> devices() const noexcept {
    return devices_;
  }
  [[nodiscard]] bool owns(const device& candidate) const noexcept {
    return &candidate.home() == this;
  }

  // Whose handle of the driver's that is; null if it is none's of this platform. Pre: `native` is
  // null or a live handle of a device of this driver.
  [[nodiscard]] virtual device* device_of(void* native) const noexcept;

  // The context that all devices share by default; made when first asked for, always the same.
  [[nodiscard]] result<ref<context>> default_context();
  // Fills `slot` once; the queue is a part of this platform and lives as long.
  [[nodiscard]] result<ref<queue>> make_default_queue(device& member, std::atomic<queue*>& slot);
  // A context of its own over some of the devices: at least one, all of this platform.
  [[nodiscard]] result<ref<context>> create_context(std::span<device* const> members);
  // Pre: `native` is a live context handle of this driver.
  [[nodiscard]] virtual result<ref<context>> adopt_context(device& member, void* native,
                                                           owner keep);
  [[nodiscard]] virtual result<ref<queue>> adopt_queue(device& member, void* native, owner keep);
  // `of`: of a back-end that stands on this driver. The same driver context, as one of ours.
  [[nodiscard]] virtual result<ref<context>> share_context(device& member, context& of);

 protected:
  // Called by the driver while it lists its devices, before the platform is known to anybody.
  device& add(std::unique_ptr<device> found);
  // Pre: members belong to this platform. `whole` is null, or the platform whose part the context
  // is.
  [[nodiscard]] virtual result<ref<context>> make_context(std::vector<device*> members,
                                                          platform* whole) = 0;

 private:
  platform_properties properties_;
  std::vector<std::unique_ptr<device>> devices_;
  std::mutex defaults_lock_;
  // Parts, which never release themselves: the platform deletes them, queues before their context.
  std::vector<queue*> default_queues_;
  context* default_context_ = nullptr;

  [[nodiscard]] result<context*> default_context_locked();
};

}  // namespace isthmus
