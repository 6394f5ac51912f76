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

Error refused(const Item& given, std::string_view allowed) {
  return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "simulated device: {}={} is not possible: use {}",
              given.key, quoted(given.value), allowed);
}

struct NumberRule {
  Unit of;
  std::uint64_t least;
  std::uint64_t most;
};

Result<void> set_number(const Item& given, const NumberRule& rule, std::uint64_t& target) {
  const auto value = parse_quantity(given.value, rule.of);
  if (!value || *value < rule.least || *value > rule.most) {
    return refused(given, formatted("{}, from {} to {}", describe(rule.of), rule.least, rule.most));
  }
  target = *value;
  return {};
}

Result<void> set_flag(const Item& given, bool& target) {
  if (given.value != "0" && given.value != "1") {
    return refused(given, "0 or 1");
  }
  target = given.value == "1";
  return {};
}

constexpr std::uint64_t k_any_number = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t k_hour_ns = 3'600'000'000'000;
constexpr NumberRule k_bandwidth_rule{Unit::bandwidth, 1, 1'000'000'000'000'000};

Result<void> set_devices(const Item& given, Options& options) {
  return set_number(given, {Unit::none, 1, 64}, options.devices);
}
Result<void> set_capacity(const Item& given, Options& options) {
  return set_number(given, {Unit::bytes, 1, std::uint64_t{1} << 44}, options.capacity);
}
Result<void> set_engines(const Item& given, Options& options) {
  return set_number(given, {Unit::none, 1, 2}, options.engines);
}
Result<void> set_bandwidth(const Item& given, Options& options) {
  return set_number(given, k_bandwidth_rule, options.bandwidth);
}
Result<void> set_device_bandwidth(const Item& given, Options& options) {
  return set_number(given, k_bandwidth_rule, options.device_bandwidth);
}
Result<void> set_latency(const Item& given, Options& options) {
  return set_number(given, {Unit::time, 0, k_hour_ns}, options.latency_ns);
}
Result<void> set_seed(const Item& given, Options& options) {
  options.reseed = true;
  return set_number(given, {Unit::none, 0, k_any_number}, options.seed);
}
Result<void> set_wait_for_host(const Item& given, Options& options) {
  return set_flag(given, options.wait_for_host);
}
Result<void> set_usm(const Item& given, Options& options) { return set_flag(given, options.usm); }
Result<void> set_remap(const Item& given, Options& options) {
  return set_flag(given, options.remap);
}

Result<void> set_effect(const Item& given, Options& options) {
  if (given.value == "early") {
    options.when = Effect::early;
  } else if (given.value == "late") {
    options.when = Effect::late;
  } else if (given.value == "random") {
    options.when = Effect::random;
  } else {
    return refused(given, "early, late or random");
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

Result<void> set_kinds(const Item& given, Options& options) {
  std::uint64_t kinds = 0;
  for (std::string_view rest = given.value;;) {
    const auto end = std::min(rest.find('+'), rest.size());
    const auto kind = kind_named(rest.substr(0, end));
    if (kind == 0 || (kinds & kind) != 0) {
      return refused(given, "kinds joined by '+', each once: device+shared+host");
    }
    kinds |= kind;
    if (end == rest.size()) {
      options.kinds = kinds;
      return {};
    }
    rest.remove_prefix(end + 1);
  }
}

Result<void> set_fail(const Item& given, Options& options) {
  if (given.value == "none") {
    options.faults.clear();
    options.clear_faults = true;
    return {};
  }
  const auto colon = std::min(given.value.find(':'), given.value.size());
  const auto kind = find_call(given.value.substr(0, colon));
  const auto nth =
      parse_quantity(given.value.substr(std::min(colon + 1, given.value.size())), Unit::none);
  if (!kind || *kind == Call::violation || !nth || *nth == 0) {
    return refused(given,
                   formatted("none, or KIND:N with N from 1 and KIND one of {}", call_names()));
  }
  options.faults.push_back({*kind, *nth});
  return {};
}

Result<void> set_lost(const Item& given, Options& options) {
  if (given.value == "now") {
    options.lost_after = 0;
    return {};
  }
  const auto calls = parse_quantity(given.value, Unit::none);
  // Far below the largest number, since it is added to the number of calls made so far.
  if (!calls || *calls == 0 || *calls > k_any_number / 2) {
    return refused(given, "now, or the number of calls, from 1, after which the device is lost");
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
  Reader(Source source, Options base) : from_{source}, read_{std::move(base)} {}

  Result<void> read(std::string_view text) {
    const auto equals = text.find('=');
    if (equals == std::string_view::npos) {
      return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                  "simulated device: {} is not an option: write key=value, joined by ','",
                  quoted(text));
    }
    const Item given{text.substr(0, equals), text.substr(equals + 1)};
    const auto* rule =
        std::find_if(std::begin(k_rules), std::end(k_rules),
                     [&](const OptionRule& known) { return known.key == given.key; });
    if (rule == std::end(k_rules)) {
      return unknown_option(given.key);
    }
    ISTHMUS_TRY(check_place(given, *rule));
    return rule->set(given, read_);
  }

  [[nodiscard]] Options take() noexcept { return std::move(read_); }

 private:
  Result<void> check_place(const Item& given, const OptionRule& rule) {
    if (from_ == Source::change && !rule.can_change) {
      return refused(
          given,
          "it when the device is created: it cannot change during the lifetime of the device");
    }
    if (from_ != Source::environment && given.key == "devices") {
      return refused(given,
                     "it in the environment variable ISTHMUS_SIM: this call creates one device");
    }
    const bool again = std::find(seen_.begin(), seen_.end(), given.key) != seen_.end();
    if (again && given.key != "fail") {
      return refused(given, "each option once; only fail may be repeated");
    }
    seen_.push_back(given.key);
    return {};
  }

  Source from_;
  Options read_;
  std::vector<std::string_view> seen_;
};

}  // namespace

Result<Options> parse_options(std::string_view text, Source source, Options base) {
  Reader taken{source, std::move(base)};
  text = trimmed(text);
  while (!text.empty()) {
    const auto comma = text.find(',');
    ISTHMUS_TRY(taken.read(trimmed(text.substr(0, comma))));
    if (comma == std::string_view::npos) {
      break;
    }
    text.remove_prefix(comma + 1);
    if (text.empty()) {
      ISTHMUS_TRY(taken.read(text));  // a comma at the end: an option is missing after it
    }
  }
  return taken.take();
}

}  // namespace isthmus::sim
