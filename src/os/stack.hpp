// SPDX-License-Identifier: Apache-2.0
#pragma once
// Stack traces: addresses are captured in some hundred nanoseconds and resolved to names later.
// Thread-safe.

#include <cstddef>
#include <span>
#include <string>

namespace isthmus::os {

// Stores return addresses, the innermost first, without the leading addresses in this library
// unless all lie in it. Returns the number of addresses.
[[nodiscard]] std::size_t capture_stack(std::span<void*> out) noexcept;

// Returns a text like "function+0x1f in library", as far as the dynamic loader knows the names.
[[nodiscard]] std::string describe_frame(void* frame);

}  // namespace isthmus::os
