// SPDX-License-Identifier: Apache-2.0
#include "backend/sycl/platform.hpp"

#include <algorithm>

#include "backend/sycl/context.hpp"
#include "backend/sycl/errors.hpp"
#include "backend/sycl/queue.hpp"
#include "core/lock_guard.hpp"
#include "core/text.hpp"

namespace isthmus::sycl {

Platform::Platform(PlatformProperties properties, const Api& calls, OwnedPlatform reference,
                   TypeNumbers& numbers, std::vector<std::string>& reasons)
    : isthmus::Platform{std::move(properties)}, calls_{calls}, reference_{std::move(reference)} {
  const OwnedDevices listed{calls_, calls_.list_devices(reference_.get(), dp::k_type_all)};
  const auto add_reason = [&](const Error& error) {
    reasons.push_back(formatted("{}: {}", this->properties().name, error.message()));
  };
  if (!listed) {
    add_reason(call_failed("sycl::platform::get_devices"));
    return;
  }
  for (std::size_t index = 0; index < calls_.count_devices(listed.get()); ++index) {
    OwnedDevice device{calls_, calls_.device_at(listed.get(), index)};
    if (!device) {
      add_reason(call_failed("sycl::device"));
    } else if (auto description = describe(calls_, device.get(), numbers)) {
      add(std::make_unique<Device>(*this, calls_, *std::move(description), std::move(device)));
    } else {
      add_reason(description.failure());
    }
  }
}

isthmus::Device* Platform::device_of(void* native) const noexcept {
  return native != nullptr ? find(static_cast<DeviceReference>(native)) : nullptr;
}

Device* Platform::find(DeviceReference reference) const noexcept {
  const auto listed = devices();
  const auto device = std::ranges::find_if(listed, [&](const auto& member) {
    return calls_.same_device(static_cast<const Device&>(*member).reference(), reference);
  });
  if (device != listed.end()) {
    return static_cast<Device*>(device->get());
  }
  const LockGuard hold{sub_devices_lock_};
  return find_sub_device_locked(reference);
}

Device* Platform::find_sub_device_locked(DeviceReference reference) const noexcept {
  const auto found = std::ranges::find_if(sub_devices_, [&](const auto& sub_device) {
    return calls_.same_device(sub_device->reference(), reference);
  });
  return found != sub_devices_.end() ? found->get() : nullptr;
}

bool Platform::is_sub_device_of(const Device& parent, DeviceReference reference) const noexcept {
  for (OwnedDevice ancestor{calls_, calls_.parent_of(reference)}; ancestor;
       ancestor = OwnedDevice{calls_, calls_.parent_of(ancestor.get())}) {
    if (calls_.same_device(ancestor.get(), parent.reference())) {
      return true;
    }
  }
  return false;
}

Result<Device*> Platform::find_or_add_sub_device(Device& member, DeviceReference reference) {
  if (calls_.same_device(member.reference(), reference)) {
    return &member;
  }
  if (!is_sub_device_of(member, reference)) {
    return fail(ISTHMUS_ERROR_WRONG_CONTEXT,
                "the queue does not belong to {}: pass the device of the queue",
                member.properties().filter);
  }
  const LockGuard hold{sub_devices_lock_};
  if (auto* existing = find_sub_device_locked(reference)) {
    return existing;
  }
  TypeNumbers unused_numbers{};
  auto description = describe(calls_, reference, unused_numbers);
  ISTHMUS_TRY(description);
  description->filter = member.properties().filter;
  OwnedDevice copied{calls_, calls_.copy_device(reference)};
  if (!copied) {
    return call_failed("sycl::device");
  }
  sub_devices_.push_back(
      std::make_unique<Device>(*this, calls_, *std::move(description), std::move(copied)));
  return sub_devices_.back().get();
}

// The platform's default context is SYCL's default context, so that its memory is usable on dpctl's
// default queues.
Result<Ref<isthmus::Context>> Platform::make_context(std::vector<isthmus::Device*> members,
                                                     isthmus::Platform* owning_platform) {
  OwnedContext context;
  if (owning_platform != nullptr) {
    context = OwnedContext{calls_, calls_.platform_context(reference_.get())};
  } else {
    std::vector<DeviceReference> references;
    for (auto* member : members) {
      references.push_back(static_cast<Device*>(member)->reference());
    }
    const OwnedDevices listed{calls_, calls_.make_devices(references.size(), references.data())};
    context = OwnedContext{calls_, calls_.make_context(listed.get(), nullptr, 0)};
  }
  if (!context) {
    return call_failed("sycl::context");
  }
  return Ref<isthmus::Context>{
      make_ref<Context>(calls_, std::move(context), std::move(members), owning_platform, Owner{})};
}

Result<std::vector<isthmus::Device*>> Platform::members_of(ContextReference native) const {
  const OwnedDevices listed{calls_, calls_.context_devices(native)};
  if (!listed) {
    return call_failed("sycl::context::get_devices");
  }
  std::vector<isthmus::Device*> members;
  for (std::size_t index = 0; index < calls_.count_devices(listed.get()); ++index) {
    const OwnedDevice reference{calls_, calls_.device_at(listed.get(), index)};
    if (!reference) {  // without it the context would lack one of its devices
      return call_failed("sycl::context::get_devices");
    }
    if (auto* device = find(reference.get())) {
      members.push_back(device);
    }
  }
  return members;
}

Result<Ref<isthmus::Context>> Platform::copy_context(ContextReference native,
                                                     std::vector<isthmus::Device*> members,
                                                     Owner owner) {
  OwnedContext copied{calls_, calls_.copy_context(native)};
  if (!copied) {
    return call_failed("sycl::context");
  }
  return Ref<isthmus::Context>{
      make_ref<Context>(calls_, std::move(copied), std::move(members), nullptr, std::move(owner))};
}

Result<Ref<isthmus::Context>> Platform::adopt_context(isthmus::Device& member, void* native,
                                                      Owner owner) {
  if (native == nullptr) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "a null pointer is not a sycl::context");
  }
  auto* const context = static_cast<ContextReference>(native);
  auto members = members_of(context);
  ISTHMUS_TRY(members);
  if (std::ranges::find(*members, &member) == members->end()) {
    return fail(ISTHMUS_ERROR_WRONG_CONTEXT,
                "{} is not a device of the context: pass one of the context's devices",
                member.properties().filter);
  }
  return copy_context(context, *std::move(members), std::move(owner));
}

Result<Ref<isthmus::Queue>> Platform::adopt_queue(isthmus::Device& member, void* native,
                                                  Owner owner) {
  if (native == nullptr) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "a null pointer is not a sycl::queue");
  }
  OwnedQueue copied{calls_, calls_.copy_queue(static_cast<QueueReference>(native))};
  const OwnedDevice native_device{calls_, copied ? calls_.queue_device(copied.get()) : nullptr};
  const OwnedContext native_context{calls_, copied ? calls_.queue_context(copied.get()) : nullptr};
  if (!native_device || !native_context) {
    return call_failed("sycl::queue");
  }
  auto found = find_or_add_sub_device(static_cast<Device&>(member), native_device.get());
  ISTHMUS_TRY(found);
  auto& device = **found;
  const auto key = calls_.queue_key(copied.get());
  const LockGuard hold{device.adoption_lock()};
  if (auto existing = device.known_queues().find(key)) {
    return existing;
  }
  auto members = members_of(native_context.get());
  ISTHMUS_TRY(members);
  auto context = copy_context(native_context.get(), *std::move(members), Owner{});
  ISTHMUS_TRY(context);
  auto queue = make_ref<Queue>(**context, calls_, device, std::move(copied), std::move(owner));
  device.known_queues().add(key, *queue);
  return Ref<isthmus::Queue>{std::move(queue)};
}

}  // namespace isthmus::sycl
