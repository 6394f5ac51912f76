// SPDX-License-Identifier: Apache-2.0
#pragma once
// A platform: one vendor's driver, or the host. Owns its devices, their default context and default
// queues. Thread-safe once the driver has listed its devices.

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

  // The device with this driver handle; null if it is not a device of this platform. Pre: `native`
  // is null or a live device handle of this driver.
  [[nodiscard]] virtual device* device_of(void* native) const noexcept;

  // The default context, shared by all devices. Created on first use; always the same one.
  [[nodiscard]] result<ref<context>> default_context();
  // Creates the queue and stores it in `slot`, once. The queue is a part of this platform and lives
  // as long.
  [[nodiscard]] result<ref<queue>> make_default_queue(device& member, std::atomic<queue*>& slot);
  // A separate context over some of the devices: at least one, all of this platform.
  [[nodiscard]] result<ref<context>> create_context(std::span<device* const> members);
  // Pre: `native` is a live context handle of this driver.
  [[nodiscard]] virtual result<ref<context>> adopt_context(device& member, void* native,
                                                           owner keep);
  [[nodiscard]] virtual result<ref<queue>> adopt_queue(device& member, void* native, owner keep);
  // The same driver context as a context of this platform. Pre: `of` belongs to a backend that is
  // built on this driver.
  [[nodiscard]] virtual result<ref<context>> share_context(device& member, context& of);

 protected:
  // For the driver, while it lists its devices and before the platform is published.
  device& add(std::unique_ptr<device> found);
  // Pre: the members belong to this platform. `whole` is null, or the platform that the context
  // becomes a part of.
  [[nodiscard]] virtual result<ref<context>> make_context(std::vector<device*> members,
                                                          platform* whole) = 0;

 private:
  platform_properties properties_;
  std::vector<std::unique_ptr<device>> devices_;
  std::mutex defaults_lock_;
  // Parts, which do not release themselves. The platform deletes them, queues before their context.
  std::vector<queue*> default_queues_;
  context* default_context_ = nullptr;

  [[nodiscard]] result<context*> default_context_locked();
};

}  // namespace isthmus
