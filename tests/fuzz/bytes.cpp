// SPDX-License-Identifier: Apache-2.0
// Fuzzes the parser of byte sizes and shares of a device's memory. It returns a number that parses
// to the same value when it is printed, or fails with a message and leaves its output unchanged.
#include <isthmus/experimental.h>

#include <string>

#include "input.hpp"

namespace {

using fuzz::require;

void expect_same_again(std::uint64_t bytes, const char* unit) {
  std::uint64_t again = 0;
  const std::string text = std::to_string(bytes) + unit;
  require(isthmus_bytes_parse(text.c_str(), nullptr, 0, &again) == ISTHMUS_OK && again == bytes);
}

// A share is at most the whole, and is defined for the three USM kinds only.
void expect_share(isthmus_device_t* device, isthmus_kind_t kind, std::uint64_t bytes) {
  std::uint64_t all = 0;
  require(kind >= ISTHMUS_KIND_DEVICE && kind <= ISTHMUS_KIND_HOST);
  require(isthmus_bytes_parse("100%", device, kind, &all) == ISTHMUS_OK && bytes <= all);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  fuzz::input from(data, size);
  isthmus_device_t* device = nullptr;
  const std::uint8_t which = from.byte();
  if (which % 3 == 1) require(isthmus_device_find("host", &device) == ISTHMUS_OK);
  if (which % 3 == 2) require(isthmus_sim_create("capacity=64MiB", &device) == ISTHMUS_OK);
  const auto kind = static_cast<isthmus_kind_t>(from.byte() % 6 - 1);
  std::string text;
  while (from.more()) text += static_cast<char>(from.byte());
  text = text.c_str();  // up to the first NUL

  const std::uint64_t untouched = 77;
  std::uint64_t bytes = untouched;
  const isthmus_status_t code = isthmus_bytes_parse(text.c_str(), device, kind, &bytes);
  fuzz::expect_documented(code);
  if (code == ISTHMUS_OK) {
    expect_same_again(bytes, "");
    expect_same_again(bytes, "B");
    expect_same_again(bytes, " b");
    if (text.find('%') != std::string::npos) expect_share(device, kind, bytes);
  } else {
    require(bytes == untouched);
  }
  isthmus_device_release(device);
  return 0;
}
