// SPDX-License-Identifier: Apache-2.0
#pragma once
// The tracking mechanisms: the ways to detect the written ranges of a host copy. tracked_memory.hpp
// describes them. Thread-safe.

#include <cstdint>
#include <optional>

#include "core/status.hpp"

namespace isthmus::tracking {

enum class TrackingMechanism : std::uint8_t { pages, bytes, hashes };

// How much memory a write of one byte marks as written: what the mechanism finds cheapest
// (`automatic`), or a small page if the mechanism is `pages` (`page`).
enum class Granularity : std::uint8_t { automatic, page };

// What executes the copies between the tracked memory and the other copy. `nothing` if there is no
// other copy.
enum class CopiedBy : std::uint8_t { device, processor, nothing };

// Returns "pages", "bytes" or "hashes".
[[nodiscard]] const char* mechanism_name(TrackingMechanism mechanism) noexcept;
// Parses a value of ISTHMUS_TRACKING. Returns no mechanism for null or an empty string.
// INVALID_ARGUMENT for an unknown value.
[[nodiscard]] Result<std::optional<TrackingMechanism>> parse_mechanism(const char* text);

}  // namespace isthmus::tracking
