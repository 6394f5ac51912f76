// SPDX-License-Identifier: Apache-2.0
#include "core/quantities.hpp"

#include <limits>
#include <span>

namespace isthmus {
namespace {

struct Suffix {
  std::string_view text;
  std::uint64_t factor;
};

constexpr std::uint64_t k_kibi = 1024;
constexpr std::uint64_t k_kilo = 1000;

constexpr Suffix k_no_units[] = {{"", 1}};
constexpr Suffix k_bytes[] = {{"", 1},
                              {"B", 1},
                              {"KiB", k_kibi},
                              {"MiB", k_kibi* k_kibi},
                              {"GiB", k_kibi* k_kibi* k_kibi},
                              {"TiB", k_kibi* k_kibi* k_kibi* k_kibi}};
constexpr Suffix k_times[] = {
    {"ns", 1}, {"us", k_kilo}, {"ms", k_kilo* k_kilo}, {"s", k_kilo* k_kilo* k_kilo}};
constexpr Suffix k_bandwidths[] = {{"B/s", 1},
                                   {"kB/s", k_kilo},
                                   {"MB/s", k_kilo* k_kilo},
                                   {"GB/s", k_kilo* k_kilo* k_kilo},
                                   {"TB/s", k_kilo* k_kilo* k_kilo* k_kilo},
                                   {"KiB/s", k_kibi},
                                   {"MiB/s", k_kibi* k_kibi},
                                   {"GiB/s", k_kibi* k_kibi* k_kibi},
                                   {"TiB/s", k_kibi* k_kibi* k_kibi* k_kibi}};

std::span<const Suffix> suffixes(Unit unit) noexcept {
  switch (unit) {
    case Unit::bytes: return k_bytes;
    case Unit::time: return k_times;
    case Unit::bandwidth: return k_bandwidths;
    default: return k_no_units;
  }
}

std::optional<std::uint64_t> factor_of(std::string_view text, Unit unit) noexcept {
  for (const auto& suffix : suffixes(unit)) {
    if (suffix.text == text) {
      return suffix.factor;
    }
  }
  return std::nullopt;
}

// Consumes the digits at the front of `text`. Returns no value if there are none or if the number
// does not fit.
std::optional<std::uint64_t> consume_digits(std::string_view& text) noexcept {
  constexpr auto max_value = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t value = 0;
  std::size_t count = 0;
  for (; count < text.size() && text[count] >= '0' && text[count] <= '9'; ++count) {
    const auto digit = static_cast<std::uint64_t>(text[count] - '0');
    if (value > (max_value - digit) / 10) {
      return std::nullopt;
    }
    value = value * 10 + digit;
  }
  text.remove_prefix(count);
  return count == 0 ? std::nullopt : std::optional{value};
}

// The digits after the point, in units of 10^-k_fraction_digits.
constexpr std::size_t k_fraction_digits = 6;
constexpr std::uint64_t k_fraction_unit = 1'000'000;

std::optional<std::uint64_t> consume_fraction(std::string_view& text) noexcept {
  if (text.empty() || text.front() != '.') {
    return 0;
  }
  text.remove_prefix(1);
  const auto original_size = text.size();
  auto value = consume_digits(text);
  const auto digits = original_size - text.size();
  if (!value || digits > k_fraction_digits) {
    return std::nullopt;
  }
  for (auto remaining = k_fraction_digits - digits; remaining > 0; --remaining) {
    *value *= 10;
  }
  return value;
}

}  // namespace

std::optional<std::uint64_t> parse_quantity(std::string_view text, Unit unit) noexcept {
  constexpr auto max_value = std::numeric_limits<std::uint64_t>::max();
  const auto integer = consume_digits(text);
  if (!integer) {
    return std::nullopt;
  }
  const auto fraction =
      unit == Unit::none ? std::optional<std::uint64_t>{0} : consume_fraction(text);
  // Zero needs no unit.
  const auto factor =
      text.empty() && *integer == 0 ? std::optional<std::uint64_t>{1} : factor_of(text, unit);
  // No overflow: the largest factor is 2^40 and a fraction is below 2^20. Fractions of a byte or
  // nanosecond are rejected.
  if (!fraction || !factor || *integer > max_value / *factor ||
      *fraction * *factor % k_fraction_unit != 0) {
    return std::nullopt;
  }
  const auto fraction_value = *fraction * *factor / k_fraction_unit;
  const auto value = *integer * *factor;
  return value > max_value - fraction_value ? std::nullopt : std::optional{value + fraction_value};
}

std::optional<std::uint64_t> parse_share(std::string_view text, std::uint64_t total) noexcept {
  constexpr auto whole = 100 * k_fraction_unit;
  const auto percent = consume_digits(text);
  const auto fraction = percent ? consume_fraction(text) : std::nullopt;
  if (!fraction || text != "%" || *percent > 100) {
    return std::nullopt;
  }
  const auto share = *percent * k_fraction_unit + *fraction;
  return share > whole ? std::nullopt
                       : std::optional{total / whole * share + total % whole * share / whole};
}

const char* describe(Unit unit) noexcept {
  switch (unit) {
    case Unit::bytes: return "a size in bytes, KiB, MiB, GiB or TiB (\"64MiB\")";
    case Unit::time: return "a time in ns, us, ms or s (\"5us\")";
    case Unit::bandwidth:
      return "a bandwidth in B/s, kB/s, MB/s, GB/s, TB/s or KiB/s to TiB/s (\"16GB/s\")";
    default: return "a whole number";
  }
}

}  // namespace isthmus
