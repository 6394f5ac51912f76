#pragma once
// Tags: names that a thread allocates under, for whoever tells who holds memory. A tag is its
// name's one text, which lives for ever: two are the same if their addresses are.

#include <string_view>

#include "core/status.hpp"
#include "core/tls.hpp"

namespace isthmus {

namespace detail {
ISTHMUS_TLS_MODEL extern thread_local constinit const char* thread_tag;
}

// INVALID_ARGUMENT for an empty name.
[[nodiscard]] result<const char*> tag_of(std::string_view name);
// The calling thread's; null: none.
[[nodiscard]] inline const char* current_tag() noexcept { return detail::thread_tag; }
const char* swap_tag(const char* next) noexcept;

}  // namespace isthmus
