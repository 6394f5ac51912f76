#pragma once
// The calls that a thread is in: their addresses, taken in some hundred nanoseconds, and what these
// are called, looked up later.

#include <cstddef>
#include <span>
#include <string>

namespace isthmus::os {

// Return addresses, the innermost first, without those that come first and are of the library that
// this is in; how many there are.
[[nodiscard]] std::size_t capture_stack(std::span<void*> out) noexcept;

// "function+0x1f in library", as far as the dynamic loader knows them.
[[nodiscard]] std::string describe_frame(void* frame);

}  // namespace isthmus::os
