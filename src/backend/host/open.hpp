// SPDX-License-Identifier: Apache-2.0
#pragma once
// The host itself as a platform, which is always present and has one device.

#include <vector>

#include "backend/platform.hpp"

namespace isthmus::host {

[[nodiscard]] Result<std::vector<Ref<Platform>>> open();

}  // namespace isthmus::host
