// SPDX-License-Identifier: Apache-2.0
// Fuzzes the parser of a simulated device's options. The result is a device that works, or an error
// that says why not.
#include <isthmus/experimental.h>
#include <cstdint>
#include <string>

#include "input.hpp"

namespace {

using fuzz::require;

void expect_refused(isthmus_status_t code) {
  require(code == ISTHMUS_ERROR_INVALID_ARGUMENT && *isthmus_error_message() != '\0');
}

// Whatever the options, the device reports its properties and accepts requests for memory.
void expect_usable(isthmus_device_t* device) {
  isthmus_device_info_t info{};
  info.struct_size = sizeof info;
  require(isthmus_device_info(device, &info) == ISTHMUS_OK);
  require(info.copy_engines >= 1 && info.max_allocation_bytes <= info.memory_bytes);
  isthmus_queue_t* queue = nullptr;
  // The options requested a fault.
  if (isthmus_queue_create(nullptr, device, &queue) != ISTHMUS_OK) return;
  isthmus_buffer_t* buffer = nullptr;
  if (isthmus_buffer_create(64, ISTHMUS_KIND_DEVICE, 0, queue, nullptr, &buffer) == ISTHMUS_OK) {
    const isthmus_endpoint_t place{buffer, nullptr, 0};
    (void)isthmus_fill(queue, &place, "x", 1, 64, nullptr, nullptr);
    isthmus_buffer_release(buffer);
  }
  isthmus_queue_release(queue);
}

}  // namespace

// The first line is for making the device, the rest changes its configuration.
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string all(reinterpret_cast<const char*>(data), size);
  const std::size_t end = all.find('\n');
  isthmus_device_t* device = nullptr;
  const isthmus_status_t made = isthmus_sim_create(all.substr(0, end).c_str(), &device);
  if (made != ISTHMUS_OK) {
    require(device == nullptr);
    expect_refused(made);
    return 0;
  }
  if (end != std::string::npos) {
    const isthmus_status_t changed = isthmus_sim_configure(device, all.substr(end + 1).c_str());
    if (changed != ISTHMUS_OK) expect_refused(changed);
  }
  expect_usable(device);
  isthmus_device_release(device);
  return 0;
}
