// Any text as a device filter: found, not found or refused, with a message; never anything else.
// Simulated devices are found only by name, so a filter that names no back-end never gives one.
#include <isthmus/isthmus.h>
#include <string>
#include <string_view>

#include "input.hpp"

namespace {

using fuzz::require;

// A filter that finds a device is found again under the device's own name.
void expect_same_again(isthmus_device_t* found) {
  isthmus_device_info_t info{};
  info.struct_size = sizeof info;
  require(isthmus_device_info(found, &info) == ISTHMUS_OK);
  isthmus_device_t* again = nullptr;
  require(isthmus_device_find(info.filter, &again) == ISTHMUS_OK && again == found);
  isthmus_device_release(again);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  // Real drivers are no part of this, and slow to open.
  static const int hidden = setenv("ISTHMUS_OPENCL_LIBRARY", "/nonexistent", 1);
  (void)hidden;
  const std::string filter(reinterpret_cast<const char*>(data), size);
  if (filter.find("opencl") != std::string::npos) return 0;
  isthmus_device_t* found = nullptr;
  const isthmus_status_t code = isthmus_device_find(filter.c_str(), &found);
  if (code == ISTHMUS_OK) {
    require(found != nullptr);
    expect_same_again(found);
    isthmus_device_release(found);
  } else {
    require(code == ISTHMUS_ERROR_NOT_FOUND || code == ISTHMUS_ERROR_INVALID_ARGUMENT);
    require(found == nullptr && *isthmus_error_message() != '\0');
  }
  return 0;
}
