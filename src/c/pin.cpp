// SPDX-License-Identifier: Apache-2.0
// Pinning of the caller's memory.

#include "c/common.hpp"
#include "os/process.hpp"

using namespace isthmus;
using namespace isthmus::c;

namespace {

Result<Device*> device_or_default(isthmus_device_t* requested) {
  return requested != nullptr ? object(requested) : find_device("");
}

}  // namespace

isthmus_status_t isthmus_pin_add(isthmus_device_t* device, const void* pointer, size_t nbytes,
                                 int read_only, isthmus_owner_t raw_owner,
                                 isthmus_pin_t** pin) noexcept {
  isthmus::Owner owner{raw_owner};  // released in any case
  return driver_entry(ISTHMUS_NEEDS(pin), [&]() -> Result<void> {
    auto actual_device = device_or_default(device);
    ISTHMUS_TRY(actual_device);
    auto* const start = static_cast<std::byte*>(const_cast<void*>(pointer));
    return return_handle(
        isthmus::Pin::make(**actual_device, {start, nbytes, read_only != 0}, std::move(owner)),
        pin);
  });
}

isthmus_status_t isthmus_pin_info(isthmus_pin_t* pin, isthmus_pin_info_t* info) noexcept {
  return entry(ISTHMUS_NEEDS(pin, info), [&]() -> Result<void> {
    ISTHMUS_TRY(check_struct_size(*info, "info"));
    auto& pinned = *object(pin);
    *info = {info->struct_size, pinned.request().start, pinned.request().nbytes,
             pinned.is_registered() ? 1 : 0, handle(&pinned.device())};
    return {};
  });
}

isthmus_status_t isthmus_pin_wait(isthmus_pin_t* pin, int64_t timeout_ns) noexcept {
  return driver_entry(ISTHMUS_NEEDS(pin), [&]() -> Result<void> {
    return object(pin)->wait(os::deadline_after(timeout_ns));
  });
}

// Does nothing in a forked child: the memory is pinned for the parent only.
void isthmus_pin_remove(isthmus_pin_t* pin, int wait) noexcept {
  if (pin != nullptr && !os::is_forked_child()) {
    object(pin)->end(wait != 0);
    object(pin)->release();
  }
}
