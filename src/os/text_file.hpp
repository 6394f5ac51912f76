// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reads files of the kernel, whose text may have any length.

#include <string>

namespace isthmus::os {

// "" if it cannot be read. Throws std::bad_alloc.
[[nodiscard]] std::string whole_text(const std::string& path);

}  // namespace isthmus::os
