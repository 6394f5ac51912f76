// SPDX-License-Identifier: Apache-2.0
// Contexts.

#include "c/common.hpp"
#include "os/process.hpp"

using namespace isthmus;
using namespace isthmus::c;

isthmus_status_t isthmus_context_create(isthmus_device_t* const* devices, size_t count,
                                        isthmus_context_t** context) noexcept {
  return driver_entry(ISTHMUS_NEEDS(devices, context), [&]() -> Result<void> {
    std::vector<Device*> context_devices;
    for (size_t index = 0; index < count; ++index) {
      if (devices[index] == nullptr) {
        return null_pointer_error("devices[index]");
      }
      context_devices.push_back(object(devices[index]));
    }
    if (context_devices.empty()) {
      return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "a context needs at least one device");
    }
    return return_handle(context_devices.front()->platform().create_context(context_devices),
                         context);
  });
}

isthmus_status_t isthmus_context_default(isthmus_device_t* device,
                                         isthmus_context_t** context) noexcept {
  return driver_entry(ISTHMUS_NEEDS(device, context), [&]() -> Result<void> {
    return return_handle(object(device)->platform().default_context(), context);
  });
}

isthmus_status_t isthmus_context_adopt(isthmus_device_t* device, void* native,
                                       isthmus_owner_t raw_owner,
                                       isthmus_context_t** context) noexcept {
  Owner owner{raw_owner};
  return driver_entry(ISTHMUS_NEEDS(device, native, context), [&]() -> Result<void> {
    return return_handle(
        object(device)->platform().adopt_context(*object(device), native, std::move(owner)),
        context);
  });
}

isthmus_status_t isthmus_context_share(isthmus_context_t* other, isthmus_device_t* device,
                                       isthmus_context_t** context) noexcept {
  return driver_entry(ISTHMUS_NEEDS(other, device, context), [&]() -> Result<void> {
    return return_handle(object(device)->platform().share_context(*object(device), *object(other)),
                         context);
  });
}

void isthmus_context_retain(isthmus_context_t* context) noexcept {
  if (context != nullptr) {
    object(context)->retain();
  }
}

void isthmus_context_release(isthmus_context_t* context) noexcept {
  if (context != nullptr && !os::is_forked_child()) {
    object(context)->release();
  }
}

isthmus_status_t isthmus_context_info(const isthmus_context_t* context,
                                      isthmus_context_info_t* info) noexcept {
  return entry(ISTHMUS_NEEDS(context, info), [&]() -> Result<void> {
    ISTHMUS_TRY(check_struct_size(*info, "info"));
    info->device_count = object(context)->devices().size();
    info->key = object(context)->key();
    info->native = object(context)->native();
    return {};
  });
}

isthmus_status_t isthmus_context_device(const isthmus_context_t* context, size_t index,
                                        isthmus_device_t** device) noexcept {
  return entry(ISTHMUS_NEEDS(context, device), [&]() -> Result<void> {
    const auto devices = object(context)->devices();
    if (index >= devices.size()) {
      return fail(ISTHMUS_ERROR_OUT_OF_RANGE,
                  "device index {} is out of range: the number of devices in this context is {}",
                  index, devices.size());
    }
    *device = handle(Ref{devices[index]}.detach());
    return {};
  });
}

uintptr_t isthmus_context_key(const isthmus_context_t* context) noexcept {
  return context == nullptr ? 0 : object(context)->key();
}
