// SPDX-License-Identifier: Apache-2.0
#pragma once
// The device that decoded calls run on.

#include "input.hpp"

namespace fuzz {

// The host, or a simulated device: with late or random effects, or with little memory as `small`
// says.
inline isthmus_device_t* open_device(std::uint8_t which, const char* small) {
  isthmus_device_t* device = nullptr;
  const char* const options[] = {"effect=late", "effect=random", small};
  require((which % 4 == 3 ? isthmus_device_find("host", &device)
                          : isthmus_sim_create(options[which % 4], &device)) == ISTHMUS_OK);
  return device;
}

}  // namespace fuzz
