// SPDX-License-Identifier: Apache-2.0
#include "backend/sim/options.hpp"

#include <algorithm>
#include <limits>

#include "core/quantities.hpp"
#include "core/text.hpp"

namespace isthmus::sim {
namespace {

struct Item {
  std::string_view key;
  std::string_view value;
};

Error invalid_value(const Item& item, std::string_view allowed) {
  return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "simulated device: {}={} is invalid: use {}",
              item.key, quoted(item.value), allowed);
}

struct NumberRule {
  Unit unit;
  std::uint64_t min;
  std::uint64_t max;
};

Result<void> set_number(const Item& item, const NumberRule& rule, std::uint64_t& target) {
  const auto value = parse_quantity(item.value, rule.unit);
  if (!value && rule.unit == Unit::bytes) {
    if (const auto spellings = both_spellings(item.value)) {
      return invalid_value(item, *spellings);
    }
  }
  if (!value || *value < rule.min || *value > rule.max) {
    return invalid_value(item,
                         formatted("{}, from {} to {}", describe(rule.unit), rule.min, rule.max));
  }
  target = *value;
  return {};
}

Result<void> set_flag(const Item& item, bool& target) {
  if (item.value != "0" && item.value != "1") {
    return invalid_value(item, "0 or 1");
  }
  target = item.value == "1";
  return {};
}

constexpr std::uint64_t k_any_number = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t k_hour_ns = 3'600'000'000'000;
constexpr NumberRule k_bandwidth_rule{Unit::bandwidth, 1, 1'000'000'000'000'000};

Result<void> set_devices(const Item& item, Options& options) {
  return set_number(item, {Unit::none, 1, 64}, options.devices);
}
Result<void> set_capacity(const Item& item, Options& options) {
  return set_number(item, {Unit::bytes, 1, std::uint64_t{1} << 44}, options.capacity);
}
Result<void> set_engines(const Item& item, Options& options) {
  return set_number(item, {Unit::none, 1, 2}, options.engines);
}
Result<void> set_bandwidth(const Item& item, Options& options) {
  return set_number(item, k_bandwidth_rule, options.bandwidth);
}
Result<void> set_device_bandwidth(const Item& item, Options& options) {
  return set_number(item, k_bandwidth_rule, options.device_bandwidth);
}
Result<void> set_latency(const Item& item, Options& options) {
  return set_number(item, {Unit::time, 0, k_hour_ns}, options.latency_ns);
}
Result<void> set_seed(const Item& item, Options& options) {
  options.reseed = true;
  return set_number(item, {Unit::none, 0, k_any_number}, options.seed);
}
Result<void> set_wait_for_host(const Item& item, Options& options) {
  return set_flag(item, options.wait_for_host);
}
Result<void> set_usm(const Item& item, Options& options) { return set_flag(item, options.usm); }
Result<void> set_remap(const Item& item, Options& options) { return set_flag(item, options.remap); }

Result<void> set_effect(const Item& item, Options& options) {
  if (item.value == "early") {
    options.effect = Effect::early;
  } else if (item.value == "late") {
    options.effect = Effect::late;
  } else if (item.value == "random") {
    options.effect = Effect::random;
  } else {
    return invalid_value(item, "early, late or random");
  }
  return {};
}

std::uint64_t kind_named(std::string_view name) noexcept {
  for (const UsmKind kind : {ISTHMUS_KIND_DEVICE, ISTHMUS_KIND_SHARED, ISTHMUS_KIND_HOST}) {
    if (name == kind_name(kind)) {
      return kind_capability(kind);
    }
  }
  return 0;
}

Result<void> set_kinds(const Item& item, Options& options) {
  std::uint64_t kinds = 0;
  for (std::string_view rest = item.value;;) {
    const auto end = std::min(rest.find('+'), rest.size());
    const auto kind = kind_named(rest.substr(0, end));
    if (kind == 0 || (kinds & kind) != 0) {
      return invalid_value(item, "kinds joined by '+', each once: device+shared+host");
    }
    kinds |= kind;
    if (end == rest.size()) {
      options.kinds = kinds;
      return {};
    }
    rest.remove_prefix(end + 1);
  }
}

Result<void> set_fail(const Item& item, Options& options) {
  if (item.value == "none") {
    options.faults.clear();
    options.clear_faults = true;
    return {};
  }
  const auto colon = std::min(item.value.find(':'), item.value.size());
  const auto kind = find_call(item.value.substr(0, colon));
  const auto nth =
      parse_quantity(item.value.substr(std::min(colon + 1, item.value.size())), Unit::none);
  if (!kind || *kind == Call::violation || !nth || *nth == 0) {
    return invalid_value(
        item, formatted("none, or KIND:N with N from 1 and KIND one of {}", call_names()));
  }
  options.faults.push_back({*kind, *nth});
  return {};
}

Result<void> set_lost(const Item& item, Options& options) {
  if (item.value == "now") {
    options.lost_after = 0;
    return {};
  }
  const auto calls = parse_quantity(item.value, Unit::none);
  // Far below the largest number, since it is added to the number of calls made so far.
  if (!calls || *calls == 0 || *calls > k_any_number / 2) {
    return invalid_value(item,
                         "now, or the number of calls, from 1, after which the device is lost");
  }
  options.lost_after = *calls;
  return {};
}

struct OptionRule {
  std::string_view key;
  Result<void> (*set)(const Item&, Options&);
  bool can_change;
};
constexpr OptionRule k_rules[] = {
    {"bandwidth", set_bandwidth, true},
    {"capacity", set_capacity, false},
    {"device_bandwidth", set_device_bandwidth, true},
    {"devices", set_devices, false},
    {"effect", set_effect, true},
    {"engines", set_engines, false},
    {"fail", set_fail, true},
    {"kinds", set_kinds, false},
    {"latency", set_latency, true},
    {"lost", set_lost, true},
    {"seed", set_seed, true},
    {"usm", set_usm, false},
    {"wait_for_host", set_wait_for_host, false},
    {"remap", set_remap, false},
};

Error unknown_option(std::string_view key) {
  std::vector<std::string_view> keys;
  for (const auto& rule : k_rules) {
    keys.push_back(rule.key);
  }
  return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "simulated device: there is no option {}: use {}",
              quoted(key), joined(keys, ", "));
}

std::string_view trimmed(std::string_view text) noexcept {
  while (!text.empty() && text.front() == ' ') {
    text.remove_prefix(1);
  }
  while (!text.empty() && text.back() == ' ') {
    text.remove_suffix(1);
  }
  return text;
}

class Reader {
 public:
  Reader(Source source, Options base) : source_{source}, options_{std::move(base)} {}

  Result<void> read(std::string_view text) {
    const auto equals = text.find('=');
    if (equals == std::string_view::npos) {
      return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                  "simulated device: {} is not an option: write key=value, joined by ','",
                  quoted(text));
    }
    const Item item{text.substr(0, equals), text.substr(equals + 1)};
    const auto* rule =
        std::find_if(std::begin(k_rules), std::end(k_rules),
                     [&](const OptionRule& candidate) { return candidate.key == item.key; });
    if (rule == std::end(k_rules)) {
      return unknown_option(item.key);
    }
    ISTHMUS_TRY(check_allowed(item, *rule));
    return rule->set(item, options_);
  }

  [[nodiscard]] Options take() noexcept { return std::move(options_); }

 private:
  Result<void> check_allowed(const Item& item, const OptionRule& rule) {
    if (source_ == Source::change && !rule.can_change) {
      return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                  "simulated device: {} cannot change during the lifetime of the device: set {}={} "
                  "when the device is created",
                  item.key, item.key, quoted(item.value));
    }
    if (source_ != Source::environment && item.key == "devices") {
      return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                  "simulated device: {}={} is not allowed, since this call creates one device: set "
                  "it in the environment variable ISTHMUS_SIM",
                  item.key, quoted(item.value));
    }
    const bool is_repeated =
        std::find(seen_keys_.begin(), seen_keys_.end(), item.key) != seen_keys_.end();
    if (is_repeated && item.key != "fail") {
      return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                  "simulated device: {}={} repeats an option: use each option once; only fail may "
                  "be repeated",
                  item.key, quoted(item.value));
    }
    seen_keys_.push_back(item.key);
    return {};
  }

  Source source_;
  Options options_;
  std::vector<std::string_view> seen_keys_;
};

}  // namespace

Result<Options> parse_options(std::string_view text, Source source, Options base) {
  Reader reader{source, std::move(base)};
  text = trimmed(text);
  while (!text.empty()) {
    const auto comma = text.find(',');
    ISTHMUS_TRY(reader.read(trimmed(text.substr(0, comma))));
    if (comma == std::string_view::npos) {
      break;
    }
    text.remove_prefix(comma + 1);
    if (text.empty()) {
      ISTHMUS_TRY(reader.read(text));  // a comma at the end: an option is missing after it
    }
  }
  return reader.take();
}

}  // namespace isthmus::sim
