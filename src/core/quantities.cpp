// SPDX-License-Identifier: Apache-2.0
#include "core/quantities.hpp"

#include <algorithm>
#include <limits>
#include <span>

#include "core/text.hpp"

namespace isthmus {
namespace {

struct Suffix {
  std::string_view text;
  std::uint64_t factor;
};

constexpr std::uint64_t k_kibi = 1024;
constexpr std::uint64_t k_kilo = 1000;

constexpr Suffix k_no_units[] = {{"", 1}};
// Lower case: the letters of a size may have either case, those of other units are as here.
constexpr Suffix k_bytes[] = {{"", 1},
                              {"b", 1},
                              {"kb", k_kilo},
                              {"mb", k_kilo* k_kilo},
                              {"gb", k_kilo* k_kilo* k_kilo},
                              {"tb", k_kilo* k_kilo* k_kilo* k_kilo},
                              {"kib", k_kibi},
                              {"mib", k_kibi* k_kibi},
                              {"gib", k_kibi* k_kibi* k_kibi},
                              {"tib", k_kibi* k_kibi* k_kibi* k_kibi}};
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

constexpr char lower(char letter) noexcept {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

bool matches(std::string_view text, std::string_view suffix, Unit unit) noexcept {
  return unit != Unit::bytes ? text == suffix : std::ranges::equal(text, suffix, {}, lower);
}

std::optional<std::uint64_t> factor_of(std::string_view text, Unit unit) noexcept {
  for (const auto& suffix : suffixes(unit)) {
    if (matches(text, suffix.text, unit)) {
      return suffix.factor;
    }
  }
  return std::nullopt;
}

// Consumes the spaces between a number and its unit. Spaces at the end remain, and equal no unit.
void consume_spaces(std::string_view& text) noexcept {
  const auto unit = text.find_first_not_of(' ');
  text.remove_prefix(unit == std::string_view::npos ? 0 : unit);
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

struct Prefix {
  char lower;
  std::string_view decimal;
  std::string_view binary;
};
constexpr Prefix k_prefixes[] = {
    {'k', "kB", "KiB"}, {'m', "MB", "MiB"}, {'g', "GB", "GiB"}, {'t', "TB", "TiB"}};

const Prefix* find_prefix(char letter) noexcept {
  for (const auto& prefix : k_prefixes) {
    if (lower(letter) == prefix.lower) {
      return &prefix;
    }
  }
  return nullptr;
}

// 64000000 as "64,000,000".
std::string grouped(std::uint64_t value) {
  auto digits = std::to_string(value);
  for (auto end = digits.size(); end > 3; end -= 3) {
    digits.insert(end - 3, 1, ',');
  }
  return digits;
}

// "64MB (64,000,000 bytes)".
std::optional<std::string> spelling(std::string_view number, std::string_view unit) {
  const auto size = formatted("{}{}", number, unit);
  const auto bytes = parse_quantity(size, Unit::bytes);
  return bytes ? std::optional{formatted("{} ({} bytes)", size, grouped(*bytes))} : std::nullopt;
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
  if (unit == Unit::bytes) {
    consume_spaces(text);
  }
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
  consume_spaces(text);
  if (!fraction || text != "%" || *percent > 100) {
    return std::nullopt;
  }
  const auto share = *percent * k_fraction_unit + *fraction;
  return share > whole ? std::nullopt
                       : std::optional{total / whole * share + total % whole * share / whole};
}

const char* describe(Unit unit) noexcept {
  switch (unit) {
    case Unit::bytes: return "a size in bytes, kB, MB, GB, TB, KiB, MiB, GiB or TiB (\"64MiB\")";
    case Unit::time: return "a time in ns, us, ms or s (\"5us\")";
    case Unit::bandwidth:
      return "a bandwidth in B/s, kB/s, MB/s, GB/s, TB/s or KiB/s to TiB/s (\"16GB/s\")";
    default: return "a whole number";
  }
}

std::optional<std::string> both_spellings(std::string_view text) {
  const auto* prefix = text.empty() ? nullptr : find_prefix(text.back());
  if (prefix == nullptr) {
    return std::nullopt;
  }
  text.remove_suffix(1);
  const auto number = text.substr(0, text.find_last_not_of(' ') + 1);
  const auto decimal = spelling(number, prefix->decimal);
  const auto binary = spelling(number, prefix->binary);
  return decimal && binary ? std::optional{formatted("{} or {}", *decimal, *binary)} : std::nullopt;
}

}  // namespace isthmus
