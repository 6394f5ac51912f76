// SPDX-License-Identifier: Apache-2.0
#pragma once
// Numbers with units, as people write them: "64MiB", "1 GB", "16GB/s", "5us". Independent of the
// locale; overflow is detected. Thread-safe.
//
// kB to TB are powers of 1000, KiB to TiB of 1024. In sizes the letters may have either case, and
// spaces may precede them. "64M" is no size: programs differ in how they read it.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace isthmus {

// The units that a value may have; `describe` lists them for messages.
enum class Unit { none, bytes, time, bandwidth };

// Returns the value in bytes, nanoseconds or bytes per second; no value if the text as a whole is
// not such a number, or if the value is not an integer or does not fit 64 bits.
[[nodiscard]] std::optional<std::uint64_t> parse_quantity(std::string_view text,
                                                          Unit unit) noexcept;
[[nodiscard]] const char* describe(Unit unit) noexcept;
// Returns the share of `total` that a text like "80%" or "12.5 %" denotes, rounded down; none if
// the text is not a percentage from 0 to 100.
[[nodiscard]] std::optional<std::uint64_t> parse_share(std::string_view text,
                                                       std::uint64_t total) noexcept;

// "64MB (64,000,000 bytes) or 64MiB (67,108,864 bytes)" for "64M"; no value if `text` is not a
// number with a bare prefix from K to T of either case, or if a reading does not fit 64 bits.
[[nodiscard]] std::optional<std::string> both_spellings(std::string_view text);

}  // namespace isthmus
