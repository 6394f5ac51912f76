// SPDX-License-Identifier: Apache-2.0
#pragma once
// A file with one writer at a time: two writers that truncate and write the same file would corrupt
// it. Thread-safe.

#include <cstdio>

namespace isthmus::os {

// Creates or truncates the file and locks it against other callers of this function, in any
// process, as far as its file system supports locks. Null with `errno` set; EWOULDBLOCK if another
// writer has the file, which is then unchanged. Files that are not regular, such as a terminal, are
// not locked.
[[nodiscard]] std::FILE* open_exclusive(const char* path) noexcept;
// Unlocks the file too, even if forked children still have it open.
void close_exclusive(std::FILE* file) noexcept;

}  // namespace isthmus::os
