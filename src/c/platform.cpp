// SPDX-License-Identifier: Apache-2.0
// Platforms, devices, and drivers that are absent.

#include "backend/driver_library.hpp"
#include "backend/simulation.hpp"
#include "c/common.hpp"
#include "os/process.hpp"

using namespace isthmus;
using namespace isthmus::c;

isthmus_status_t isthmus_driver_library(const char* backend, const char* path) noexcept {
  return entry(ISTHMUS_NEEDS(backend, path),
               [&]() -> Result<void> { return set_driver_library(backend, path); });
}

isthmus_status_t isthmus_platform_count(size_t* count) noexcept {
  return driver_entry(ISTHMUS_NEEDS(count), [&]() -> Result<void> {
    *count = all_platforms().size();
    return {};
  });
}

isthmus_status_t isthmus_platform_get(size_t index, isthmus_platform_t** platform) noexcept {
  return driver_entry(ISTHMUS_NEEDS(platform), [&]() -> Result<void> {
    const auto platforms = all_platforms();
    if (index >= platforms.size()) {
      return fail(ISTHMUS_ERROR_OUT_OF_RANGE,
                  "platform index {} is out of range: the number of platforms is {}", index,
                  platforms.size());
    }
    *platform = handle(Ref{platforms[index]}.detach());
    return {};
  });
}

void isthmus_platform_retain(isthmus_platform_t* platform) noexcept {
  if (platform != nullptr) {
    object(platform)->retain();
  }
}

void isthmus_platform_release(isthmus_platform_t* platform) noexcept {
  if (platform != nullptr && !os::is_forked_child()) {
    object(platform)->release();
  }
}

isthmus_status_t isthmus_platform_info(const isthmus_platform_t* platform,
                                       isthmus_platform_info_t* info) noexcept {
  return entry(ISTHMUS_NEEDS(platform, info), [&]() -> Result<void> {
    ISTHMUS_TRY(check_struct_size(*info, "info"));
    const auto& properties = object(platform)->properties();
    *info = {info->struct_size,
             properties.backend.c_str(),
             properties.name.c_str(),
             properties.vendor.c_str(),
             properties.version.c_str(),
             properties.library.c_str(),
             object(platform)->devices().size()};
    return {};
  });
}

isthmus_status_t isthmus_platform_device(isthmus_platform_t* platform, size_t index,
                                         isthmus_device_t** device) noexcept {
  return entry(ISTHMUS_NEEDS(platform, device), [&]() -> Result<void> {
    const auto devices = object(platform)->devices();
    if (index >= devices.size()) {
      return fail(ISTHMUS_ERROR_OUT_OF_RANGE,
                  "device index {} is out of range: the number of devices on this platform is {}",
                  index, devices.size());
    }
    *device = handle(Ref{devices[index].get()}.detach());
    return {};
  });
}

isthmus_status_t isthmus_absent_driver_count(size_t* count) noexcept {
  return driver_entry(ISTHMUS_NEEDS(count), [&]() -> Result<void> {
    *count = absent_drivers().size();
    return {};
  });
}

isthmus_status_t isthmus_absent_driver_info(size_t index,
                                            isthmus_absent_driver_info_t* info) noexcept {
  return driver_entry(ISTHMUS_NEEDS(info), [&]() -> Result<void> {
    ISTHMUS_TRY(check_struct_size(*info, "info"));
    const auto drivers = absent_drivers();
    if (index >= drivers.size()) {
      return fail(ISTHMUS_ERROR_OUT_OF_RANGE,
                  "absent driver index {} is out of range: the number of absent drivers is {}",
                  index, drivers.size());
    }
    info->backend = drivers[index].backend.data();
    info->reason = drivers[index].reason.data();
    return {};
  });
}

isthmus_status_t isthmus_device_find(const char* filter, isthmus_device_t** device) noexcept {
  return entry(ISTHMUS_NEEDS(device), [&]() -> Result<void> {
    auto found_device = find_device(filter == nullptr ? "" : filter);
    if (!found_device) {
      return found_device.take_error();
    }
    *device = handle(Ref{*found_device}.detach());
    return {};
  });
}

void isthmus_device_retain(isthmus_device_t* device) noexcept {
  if (device != nullptr) {
    object(device)->retain();
  }
}

void isthmus_device_release(isthmus_device_t* device) noexcept {
  if (device != nullptr && !os::is_forked_child()) {
    object(device)->release();
  }
}

isthmus_status_t isthmus_device_info(const isthmus_device_t* device,
                                     isthmus_device_info_t* info) noexcept {
  return entry(ISTHMUS_NEEDS(device, info), [&]() -> Result<void> {
    ISTHMUS_TRY(check_struct_size(*info, "info"));
    const auto& properties = object(device)->properties();
    info->backend = object(device)->platform().properties().backend.c_str();
    info->filter = properties.filter.c_str();
    info->name = properties.name.c_str();
    info->vendor = properties.vendor.c_str();
    info->driver_version = properties.driver_version.c_str();
    info->type = properties.type;
    info->compute_units = properties.compute_units;
    info->copy_engines = properties.copy_engines;
    info->capabilities = properties.capabilities;
    info->memory_bytes = properties.memory_bytes;
    info->max_allocation_bytes = properties.max_allocation_bytes;
    info->base_alignment = properties.base_alignment;
    info->max_alignment = properties.max_alignment;
    info->limitations = properties.limitations.c_str();
    info->platform = handle(&object(device)->platform());
    info->native = object(device)->native();
    return {};
  });
}

isthmus_status_t isthmus_device_memory_info(const isthmus_device_t* device,
                                            isthmus_device_memory_info_t* info) noexcept {
  return driver_entry(ISTHMUS_NEEDS(device, info), [&]() -> Result<void> {
    ISTHMUS_TRY(check_struct_size(*info, "info"));
    auto memory = object(device)->memory();
    ISTHMUS_TRY(memory);
    info->free_bytes = memory->free_bytes;
    info->total_bytes = memory->total_bytes;
    return {};
  });
}

isthmus_status_t isthmus_device_find_native(const char* backend, void* native,
                                            isthmus_device_t** device) noexcept {
  return entry(ISTHMUS_NEEDS(backend, native, device), [&]() -> Result<void> {
    auto found_device = find_native_device(backend, native);
    ISTHMUS_TRY(found_device);
    *device = handle(Ref{*found_device}.detach());
    return {};
  });
}

isthmus_status_t isthmus_sim_create(const char* options, isthmus_device_t** device) noexcept {
  return driver_entry(ISTHMUS_NEEDS(device), [&]() -> Result<void> {
    os::watch_forks();
    return return_handle(create_simulated_device(options == nullptr ? "" : options), device);
  });
}

isthmus_status_t isthmus_sim_configure(isthmus_device_t* device, const char* options) noexcept {
  return driver_entry(ISTHMUS_NEEDS(device, options), [&]() -> Result<void> {
    return configure_simulated_device(*object(device), options);
  });
}

isthmus_status_t isthmus_sim_calls(const isthmus_device_t* device, const char* kind,
                                   uint64_t* count) noexcept {
  return driver_entry(ISTHMUS_NEEDS(device, kind, count), [&]() -> Result<void> {
    return return_value(simulated_calls(*object(device), kind), count);
  });
}

isthmus_status_t isthmus_sim_info(const isthmus_device_t* device,
                                  isthmus_sim_info_t* info) noexcept {
  return driver_entry(ISTHMUS_NEEDS(device, info), [&]() -> Result<void> {
    ISTHMUS_TRY(check_struct_size(*info, "info"));
    auto state = state_of_simulated_device(*object(device));
    ISTHMUS_TRY(state);
    info->clock_ns = state->clock_ns;
    info->device_bytes = state->device_bytes;
    info->host_bytes = state->host_bytes;
    return {};
  });
}
