// SPDX-License-Identifier: Apache-2.0
#include "backend/sim/options.hpp"

#include <algorithm>
#include <limits>

#include "core/quantities.hpp"
#include "core/text.hpp"

namespace isthmus::sim {
namespace {

struct item {
  std::string_view key;
  std::string_view value;
};

error refused(const item& given, std::string_view allowed) {
  return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "simulated device: {}={} is not possible: use {}",
              given.key, quoted(given.value), allowed);
}

struct number_rule {
  unit of;
  std::uint64_t least;
  std::uint64_t most;
};

result<void> set_number(const item& given, const number_rule& rule, std::uint64_t& target) {
  const auto value = parse_quantity(given.value, rule.of);
  if (!value || *value < rule.least || *value > rule.most) {
    return refused(given, formatted("{}, from {} to {}", describe(rule.of), rule.least, rule.most));
  }
  target = *value;
  return {};
}

result<void> set_flag(const item& given, bool& target) {
  if (given.value != "0" && given.value != "1") {
    return refused(given, "0 or 1");
  }
  target = given.value == "1";
  return {};
}

constexpr std::uint64_t k_any_number = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t k_hour_ns = 3'600'000'000'000;
constexpr number_rule k_bandwidth_rule{unit::bandwidth, 1, 1'000'000'000'000'000};

result<void> set_devices(const item& given, options& to) {
  return set_number(given, {unit::none, 1, 64}, to.devices);
}
result<void> set_capacity(const item& given, options& to) {
  return set_number(given, {unit::bytes, 1, std::uint64_t{1} << 44}, to.capacity);
}
result<void> set_engines(const item& given, options& to) {
  return set_number(given, {unit::none, 1, 2}, to.engines);
}
result<void> set_bandwidth(const item& given, options& to) {
  return set_number(given, k_bandwidth_rule, to.bandwidth);
}
result<void> set_device_bandwidth(const item& given, options& to) {
  return set_number(given, k_bandwidth_rule, to.device_bandwidth);
}
result<void> set_latency(const item& given, options& to) {
  return set_number(given, {unit::time, 0, k_hour_ns}, to.latency_ns);
}
result<void> set_seed(const item& given, options& to) {
  to.reseed = true;
  return set_number(given, {unit::none, 0, k_any_number}, to.seed);
}
result<void> set_wait_for_host(const item& given, options& to) {
  return set_flag(given, to.wait_for_host);
}
result<void> set_usm(const item& given, options& to) { return set_flag(given, to.usm); }
result<void> set_remap(const item& given, options& to) { return set_flag(given, to.remap); }

result<void> set_effect(const item& given, options& to) {
  if (given.value == "early") {
    to.when = effect::early;
  } else if (given.value == "late") {
    to.when = effect::late;
  } else if (given.value == "random") {
    to.when = effect::random;
  } else {
    return refused(given, "early, late or random");
  }
  return {};
}

std::uint64_t kind_named(std::string_view name) noexcept {
  for (const usm_kind kind : {ISTHMUS_KIND_DEVICE, ISTHMUS_KIND_SHARED, ISTHMUS_KIND_HOST}) {
    if (name == kind_name(kind)) {
      return kind_capability(kind);
    }
  }
  return 0;
}

result<void> set_kinds(const item& given, options& to) {
  std::uint64_t kinds = 0;
  for (std::string_view rest = given.value;;) {
    const auto end = std::min(rest.find('+'), rest.size());
    const auto kind = kind_named(rest.substr(0, end));
    if (kind == 0 || (kinds & kind) != 0) {
      return refused(given, "kinds joined by '+', each once: device+shared+host");
    }
    kinds |= kind;
    if (end == rest.size()) {
      to.kinds = kinds;
      return {};
    }
    rest.remove_prefix(end + 1);
  }
}

result<void> set_fail(const item& given, options& to) {
  if (given.value == "none") {
    to.faults.clear();
    to.clear_faults = true;
    return {};
  }
  const auto colon = std::min(given.value.find(':'), given.value.size());
  const auto kind = find_call(given.value.substr(0, colon));
  const auto nth =
      parse_quantity(given.value.substr(std::min(colon + 1, given.value.size())), unit::none);
  if (!kind || *kind == call::violation || !nth || *nth == 0) {
    return refused(given,
                   formatted("none, or KIND:N with N from 1 and KIND one of {}", call_names()));
  }
  to.faults.push_back({*kind, *nth});
  return {};
}

result<void> set_lost(const item& given, options& to) {
  if (given.value == "now") {
    to.lost_after = 0;
    return {};
  }
  const auto calls = parse_quantity(given.value, unit::none);
  // Far below the largest number, since it is added to the number of calls made so far.
  if (!calls || *calls == 0 || *calls > k_any_number / 2) {
    return refused(given, "now, or the number of calls, from 1, after which the device is lost");
  }
  to.lost_after = *calls;
  return {};
}

struct option_rule {
  std::string_view key;
  result<void> (*set)(const item&, options&);
  bool can_change;
};
constexpr option_rule k_rules[] = {
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

error unknown_option(std::string_view key) {
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

class reader {
 public:
  reader(source from, options base) : from_{from}, read_{std::move(base)} {}

  result<void> read(std::string_view text) {
    const auto equals = text.find('=');
    if (equals == std::string_view::npos) {
      return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                  "simulated device: {} is not an option: write key=value, joined by ','",
                  quoted(text));
    }
    const item given{text.substr(0, equals), text.substr(equals + 1)};
    const auto* rule =
        std::find_if(std::begin(k_rules), std::end(k_rules),
                     [&](const option_rule& known) { return known.key == given.key; });
    if (rule == std::end(k_rules)) {
      return unknown_option(given.key);
    }
    ISTHMUS_TRY(check_place(given, *rule));
    return rule->set(given, read_);
  }

  [[nodiscard]] options take() noexcept { return std::move(read_); }

 private:
  result<void> check_place(const item& given, const option_rule& rule) {
    if (from_ == source::change && !rule.can_change) {
      return refused(
          given,
          "it when the device is created: it cannot change during the lifetime of the device");
    }
    if (from_ != source::environment && given.key == "devices") {
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

  source from_;
  options read_;
  std::vector<std::string_view> seen_;
};

}  // namespace

result<options> parse_options(std::string_view text, source from, options base) {
  reader taken{from, std::move(base)};
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
