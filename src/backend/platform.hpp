// SPDX-License-Identifier: Apache-2.0
#pragma once
// A platform: one vendor's driver, or the host. Owns its devices, their default context and default
// queues. Thread-safe after construction.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/context.hpp"
#include "backend/device.hpp"
#include "core/mutex.hpp"
#include "core/owner.hpp"
#include "core/thread_safety.hpp"

namespace isthmus {

struct PlatformProperties {
  std::string backend;  // "host", "sim", "cuda", "opencl", "sycl"
  std::string name;
  std::string vendor;
  std::string version;
  std::string library;
};

class Queue;

class Platform : public RefCounted {
 public:
  explicit Platform(PlatformProperties properties) : properties_{std::move(properties)} {}
  ~Platform() override;

  [[nodiscard]] const PlatformProperties& properties() const noexcept { return properties_; }
  [[nodiscard]] std::span<const std::unique_ptr<Device>> devices() const noexcept {
    return devices_;
  }
  [[nodiscard]] bool owns(const Device& candidate) const noexcept {
    return &candidate.platform() == this;
  }

  // The device with this driver handle; null if it is not a device of this platform. `native`
  // is null or a live device handle of this driver.
  [[nodiscard]] virtual Device* device_of(void* native) const noexcept;

  // The default context, shared by all devices. Created on first use; always the same one.
  [[nodiscard]] Result<Ref<Context>> default_context();
  // The queue of the default context for callers that specify a device but no queue. Created on
  // first use. The device's platform owns it until its own destruction.
  [[nodiscard]] static Result<Ref<Queue>> default_queue(Device& device);
  // Creates a separate context over `members`. INVALID_ARGUMENT if there are none, WRONG_CONTEXT if
  // one of them is not a device of this platform.
  [[nodiscard]] Result<Ref<Context>> create_context(std::span<Device* const> members);
  // `native` is a live context handle of this driver.
  [[nodiscard]] virtual Result<Ref<Context>> adopt_context(Device& member, void* native,
                                                           Owner owner);
  [[nodiscard]] virtual Result<Ref<Queue>> adopt_queue(Device& member, void* native, Owner owner);
  // Adopts the driver context on which `context`, a context of another backend, is built. That
  // backend is built on this driver.
  [[nodiscard]] virtual Result<Ref<Context>> share_context(Device& member, Context& context);

 protected:
  // Makes `device` a child of this platform. Called while the backend lists the devices, before
  // other threads can access the platform.
  Device& add(std::unique_ptr<Device> device);
  // The members belong to this platform. `owning_platform` is null, or the platform that will
  // own the context.
  [[nodiscard]] virtual Result<Ref<Context>> make_context(std::vector<Device*> members,
                                                          Platform* owning_platform) = 0;

 private:
  PlatformProperties properties_;
  std::vector<std::unique_ptr<Device>> devices_;
  Mutex defaults_lock_;
  // Owned objects: releasing references to them does not delete them. The destructor deletes the
  // queues before the context that they use.
  std::vector<Queue*> default_queues_ ISTHMUS_GUARDED_BY(defaults_lock_);
  Context* default_context_ ISTHMUS_GUARDED_BY(defaults_lock_) = nullptr;

  [[nodiscard]] Result<Context*> default_context_locked() ISTHMUS_REQUIRES(defaults_lock_);
  [[nodiscard]] Result<Ref<Queue>> create_default_queue(Device& member);
};

}  // namespace isthmus
