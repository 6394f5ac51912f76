// SPDX-License-Identifier: Apache-2.0
// Fuzzes the parser of device filters. It finds a device, finds none or rejects the text, with a
// message. Simulated devices are found only by name, so a filter that names no backend never
// returns one.
#include <isthmus/experimental.h>
#include <string>
#include <string_view>

#include "input.hpp"

namespace {

using fuzz::require;

// A device that a filter finds is also found by the filter that it reports.
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
  // Real drivers are slow to open and not tested here.
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
