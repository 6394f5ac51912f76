// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reads files of the kernel, whose text may have any length. Thread-safe.

#include <string>

namespace isthmus::os {

// Returns the text of a file, or "" if it cannot be read. Throws std::bad_alloc.
[[nodiscard]] std::string read_text_file(const std::string& path);

}  // namespace isthmus::os
