#pragma once
// Files of the kernel's, which are text of any length.

#include <string>

namespace isthmus::os {

// "" where it cannot be read. Throws std::bad_alloc.
[[nodiscard]] std::string whole_text(const std::string& path);

}  // namespace isthmus::os
