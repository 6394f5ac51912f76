#pragma once
// Sizes, ranges and alignment without overflow, and the way sizes are written in messages.

#include <cstddef>
#include <cstdint>
#include <string>

namespace isthmus {

[[nodiscard]] constexpr bool is_power_of_two(std::uint64_t value) noexcept {
  return value != 0 && (value & (value - 1)) == 0;
}

// Whether [offset, offset + nbytes) lies in [0, limit); no sum that could wrap.
[[nodiscard]] constexpr bool lies_within(std::uint64_t offset, std::uint64_t nbytes,
                                         std::uint64_t limit) noexcept {
  return offset <= limit && nbytes <= limit - offset;
}

[[nodiscard]] inline std::uintptr_t address(const void* pointer) noexcept {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

[[nodiscard]] constexpr std::size_t round_up(std::size_t value, std::size_t power_of_two) noexcept {
  return (value + power_of_two - 1) & ~(power_of_two - 1);
}

// "1.5 GiB (1610612736 bytes)"; small ones "100 bytes".
[[nodiscard]] std::string describe_bytes(std::uint64_t bytes);

}  // namespace isthmus
