#pragma once
// A file that has one writer at a time: two that empty and write the same one leave a file of
// neither.

#include <cstdio>

namespace isthmus::os {

// Makes the file, or empties it, and locks it against others that open it so, in this process and
// in others, as far as its file system has locks. Null with `errno`, EWOULDBLOCK where another has
// it; that one's file is untouched. What is no regular file, as a terminal, is open to all.
[[nodiscard]] std::FILE* open_sole(const char* path) noexcept;
// Unlocks it too, whatever forked children still have open.
void close_sole(std::FILE* open) noexcept;

}  // namespace isthmus::os
