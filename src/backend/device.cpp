// SPDX-License-Identifier: Apache-2.0
#include "backend/device.hpp"

namespace isthmus {

const char* kind_name(UsmKind kind) noexcept {
  switch (kind) {
    case ISTHMUS_KIND_DEVICE: return "device";
    case ISTHMUS_KIND_SHARED: return "shared";
    case ISTHMUS_KIND_HOST: return "host";
    default: return "unknown";
  }
}

std::uint64_t kind_capability(UsmKind kind) noexcept {
  switch (kind) {
    case ISTHMUS_KIND_DEVICE: return ISTHMUS_CAN_DEVICE_KIND;
    case ISTHMUS_KIND_SHARED: return ISTHMUS_CAN_SHARED_KIND;
    case ISTHMUS_KIND_HOST: return ISTHMUS_CAN_HOST_KIND;
    default: return 0;
  }
}

Device::Device(Platform& platform, DeviceProperties properties)
    : platform_{platform}, properties_{std::move(properties)} {}

Device::~Device() = default;

Result<MemoryInfo> Device::memory() const {
  return fail(ISTHMUS_ERROR_UNSUPPORTED, "{} does not report how much of its memory is free",
              properties_.filter);
}

bool Device::copies_better_staged(const void*, const void*, std::size_t, bool) const noexcept {
  return false;
}

Result<bool> Device::register_host(const HostRange&) {
  return fail(ISTHMUS_ERROR_UNSUPPORTED, "{} cannot register host memory", properties_.filter);
}

void Device::unregister_host(void*) noexcept {}

bool Device::copies_ranges_better_staged(const void*, const void*) const noexcept { return false; }

}  // namespace isthmus
