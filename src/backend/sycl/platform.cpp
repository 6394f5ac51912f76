// SPDX-License-Identifier: Apache-2.0
#include "backend/sycl/platform.hpp"

#include <algorithm>

#include "backend/sycl/context.hpp"
#include "backend/sycl/queue.hpp"
#include "core/text.hpp"

namespace isthmus::sycl {

Platform::Platform(PlatformProperties properties, const Api& calls, OwnedPlatform reference,
                   TypeNumbers& numbers, std::vector<std::string>& reasons)
    : isthmus::Platform{std::move(properties)}, calls_{calls}, reference_{std::move(reference)} {
  const OwnedDevices listed{calls_, calls_.list_devices(reference_.get(), dp::k_type_all)};
  const auto told = [&](const Error& why) {
    reasons.push_back(formatted("{}: {}", this->properties().name, why.message()));
  };
  if (!listed) {
    told(call_failed("sycl::platform::get_devices"));
    return;
  }
  for (std::size_t index = 0; index < calls_.count_devices(listed.get()); ++index) {
    OwnedDevice one{calls_, calls_.device_at(listed.get(), index)};
    if (!one) {
      told(call_failed("sycl::device"));
    } else if (auto found = describe(calls_, one.get(), numbers)) {
      add(std::make_unique<Device>(*this, calls_, *std::move(found), std::move(one)));
    } else {
      told(found.failure());
    }
  }
}

isthmus::Device* Platform::device_of(void* native) const noexcept {
  return native != nullptr ? find(static_cast<DeviceReference>(native)) : nullptr;
}

Device* Platform::find(DeviceReference reference) const noexcept {
  const auto listed = devices();
  const auto whole = std::ranges::find_if(listed, [&](const auto& member) {
    return calls_.same_device(static_cast<const Device&>(*member).reference(), reference);
  });
  if (whole != listed.end()) {
    return static_cast<Device*>(whole->get());
  }
  const std::lock_guard hold{parts_lock_};
  return find_part_locked(reference);
}

Device* Platform::find_part_locked(DeviceReference reference) const noexcept {
  const auto found = std::ranges::find_if(
      parts_, [&](const auto& part) { return calls_.same_device(part->reference(), reference); });
  return found != parts_.end() ? found->get() : nullptr;
}

bool Platform::is_part_of(const Device& whole, DeviceReference reference) const noexcept {
  for (OwnedDevice above{calls_, calls_.parent_of(reference)}; above;
       above = OwnedDevice{calls_, calls_.parent_of(above.get())}) {
    if (calls_.same_device(above.get(), whole.reference())) {
      return true;
    }
  }
  return false;
}

Result<Device*> Platform::device_or_part(Device& member, DeviceReference reference) {
  if (calls_.same_device(member.reference(), reference)) {
    return &member;
  }
  if (!is_part_of(member, reference)) {
    return fail(ISTHMUS_ERROR_WRONG_CONTEXT, "the queue does not belong to {}",
                member.properties().filter);
  }
  const std::lock_guard hold{parts_lock_};
  if (auto* known = find_part_locked(reference)) {
    return known;
  }
  TypeNumbers apart{};
  auto told = describe(calls_, reference, apart);
  ISTHMUS_TRY(told);
  told->filter = member.properties().filter;
  OwnedDevice copied{calls_, calls_.copy_device(reference)};
  if (!copied) {
    return call_failed("sycl::device");
  }
  parts_.push_back(std::make_unique<Device>(*this, calls_, *std::move(told), std::move(copied)));
  return parts_.back().get();
}

// The platform's default context is SYCL's own default one, so that its memory is usable on dpctl's
// default queues.
Result<Ref<isthmus::Context>> Platform::make_context(std::vector<isthmus::Device*> members,
                                                     isthmus::Platform* whole) {
  OwnedContext made;
  if (whole != nullptr) {
    made = OwnedContext{calls_, calls_.platform_context(reference_.get())};
  } else {
    std::vector<DeviceReference> references;
    for (auto* member : members) {
      references.push_back(static_cast<Device*>(member)->reference());
    }
    const OwnedDevices listed{calls_, calls_.make_devices(references.size(), references.data())};
    made = OwnedContext{calls_, calls_.make_context(listed.get(), nullptr, 0)};
  }
  if (!made) {
    return call_failed("sycl::context");
  }
  return Ref<isthmus::Context>{
      make_ref<Context>(*this, std::move(made), std::move(members), whole, Owner{})};
}

Result<std::vector<isthmus::Device*>> Platform::members_of(ContextReference native) const {
  const OwnedDevices listed{calls_, calls_.context_devices(native)};
  if (!listed) {
    return call_failed("sycl::context::get_devices");
  }
  std::vector<isthmus::Device*> members;
  for (std::size_t index = 0; index < calls_.count_devices(listed.get()); ++index) {
    const OwnedDevice one{calls_, calls_.device_at(listed.get(), index)};
    if (!one) {  // without it the context would lack one of its devices
      return call_failed("sycl::context::get_devices");
    }
    if (auto* known = find(one.get())) {
      members.push_back(known);
    }
  }
  return members;
}

Result<Ref<isthmus::Context>> Platform::copy_context(ContextReference native,
                                                     std::vector<isthmus::Device*> members,
                                                     Owner keep) {
  OwnedContext copied{calls_, calls_.copy_context(native)};
  if (!copied) {
    return call_failed("sycl::context");
  }
  return Ref<isthmus::Context>{
      make_ref<Context>(*this, std::move(copied), std::move(members), nullptr, std::move(keep))};
}

Result<Ref<isthmus::Context>> Platform::adopt_context(isthmus::Device& member, void* native,
                                                      Owner keep) {
  if (native == nullptr) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "a null pointer is not a sycl::context");
  }
  auto* const given = static_cast<ContextReference>(native);
  auto members = members_of(given);
  ISTHMUS_TRY(members);
  if (std::ranges::find(*members, &member) == members->end()) {
    return fail(ISTHMUS_ERROR_WRONG_CONTEXT, "{} is not a device of that context",
                member.properties().filter);
  }
  return copy_context(given, *std::move(members), std::move(keep));
}

Result<Ref<isthmus::Queue>> Platform::adopt_queue(isthmus::Device& member, void* native,
                                                  Owner keep) {
  if (native == nullptr) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "a null pointer is not a sycl::queue");
  }
  OwnedQueue copied{calls_, calls_.copy_queue(static_cast<QueueReference>(native))};
  const OwnedDevice native_device{calls_, copied ? calls_.queue_device(copied.get()) : nullptr};
  const OwnedContext within{calls_, copied ? calls_.queue_context(copied.get()) : nullptr};
  if (!native_device || !within) {
    return call_failed("sycl::queue");
  }
  auto found = device_or_part(static_cast<Device&>(member), native_device.get());
  ISTHMUS_TRY(found);
  auto& device = **found;
  const auto key = calls_.queue_key(copied.get());
  const std::lock_guard hold{device.adopting()};
  if (auto known = device.known_queues().find(key)) {
    return known;
  }
  auto members = members_of(within.get());
  ISTHMUS_TRY(members);
  auto context = copy_context(within.get(), *std::move(members), Owner{});
  ISTHMUS_TRY(context);
  auto made =
      make_ref<Queue>(static_cast<Context&>(**context), device, std::move(copied), std::move(keep));
  device.known_queues().add(key, *made);
  return Ref<isthmus::Queue>{std::move(made)};
}

}  // namespace isthmus::sycl
