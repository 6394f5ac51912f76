#pragma once
// By which means writes are found where nobody says it.

#include "tracking/tracked_memory.hpp"

namespace isthmus::tracking {

// Below, to ask the kernel takes longer than to compare or to copy it all.
inline constexpr std::size_t k_least_paged = std::size_t{64} << 10;

// Why the kernel does not tell written pages here, after a test of it at the first call; nothing
// where it does.
[[nodiscard]] result<void> pages_are_told();
// What a write to each small page of a huge page costs by the kernel's faults, in copies of it to a
// device (38 us, H100), as measured in that test; one at least.
[[nodiscard]] std::size_t copies_of_dense_writes();
// UNSUPPORTED and INVALID_ARGUMENT, of what ISTHMUS_TRACKING asks for.
[[nodiscard]] result<means> means_for(std::size_t nbytes);
// What a text says as ISTHMUS_TRACKING; none or an empty one: nothing. INVALID_ARGUMENT.
[[nodiscard]] result<std::optional<means>> means_in(const char* text);

}  // namespace isthmus::tracking
