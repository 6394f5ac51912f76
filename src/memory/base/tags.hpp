// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tags: names under which a thread allocates, so that reports can attribute memory to them. A tag
// is the unique, never freed text of its name: two tags are the same if their addresses are.
// Thread-safe.

#include <string_view>

#include "core/status.hpp"
#include "core/tls.hpp"

namespace isthmus {

namespace detail {
ISTHMUS_TLS_MODEL extern thread_local constinit const char* thread_tag;
}

// The tag with that name. INVALID_ARGUMENT for an empty name.
[[nodiscard]] Result<const char*> tag_of(std::string_view name);
// The calling thread's tag; null if it has none. `swap_tag` sets it and returns the previous one.
[[nodiscard]] inline const char* current_tag() noexcept { return detail::thread_tag; }
const char* swap_tag(const char* next) noexcept;

}  // namespace isthmus
