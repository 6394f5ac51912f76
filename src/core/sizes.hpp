// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sizes, ranges and alignment without overflow, and the formatting of sizes in messages.

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/expects.hpp"

namespace isthmus {

[[nodiscard]] constexpr bool is_power_of_two(std::uint64_t value) noexcept {
  return value != 0 && (value & (value - 1)) == 0;
}

// Whether [offset, offset + nbytes) lies in [0, limit). Computes no sum that could wrap.
[[nodiscard]] constexpr bool lies_within(std::uint64_t offset, std::uint64_t nbytes,
                                         std::uint64_t limit) noexcept {
  return offset <= limit && nbytes <= limit - offset;
}

// Maximum number of bits of a user-space address: 48 on AArch64, 47 on x86-64.
inline constexpr unsigned k_address_bits = 48;

[[nodiscard]] inline std::uintptr_t address(const void* pointer) noexcept {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

// No object is larger than PTRDIFF_MAX.
[[nodiscard]] constexpr std::ptrdiff_t signed_of(std::size_t number) noexcept {
  ISTHMUS_EXPECTS(number <= PTRDIFF_MAX, number);
  return static_cast<std::ptrdiff_t>(number);
}

[[nodiscard]] inline std::byte* advance(void* start, std::size_t nbytes) noexcept {
  return static_cast<std::byte*>(start) + nbytes;
}
[[nodiscard]] inline const std::byte* advance(const void* start, std::size_t nbytes) noexcept {
  return static_cast<const std::byte*>(start) + nbytes;
}

[[nodiscard]] constexpr std::size_t round_up(std::size_t value, std::size_t power_of_two) noexcept {
  ISTHMUS_EXPECTS(is_power_of_two(power_of_two), power_of_two);
  return (value + power_of_two - 1) & ~(power_of_two - 1);
}

// A formatted size. It contains its text, so that out-of-memory messages need no memory.
class SizeText {
 public:
  explicit SizeText(std::uint64_t bytes) noexcept;
  operator std::string_view() const noexcept { return {text_.data(), length_}; }
  // Without the exact number of bytes: "1.5 GiB".
  [[nodiscard]] std::string_view rounded() const noexcept {
    const std::string_view text = *this;
    return text.substr(0, text.find(" ("));
  }

 private:
  std::array<char, 48> text_;
  std::size_t length_;
};

// "1.5 GiB (1610612736 bytes)"; small sizes as "100 bytes".
[[nodiscard]] inline SizeText describe_bytes(std::uint64_t bytes) noexcept {
  return SizeText{bytes};
}

}  // namespace isthmus

template <>
struct fmt::formatter<isthmus::SizeText> : fmt::formatter<std::string_view> {};
