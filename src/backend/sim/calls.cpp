// SPDX-License-Identifier: Apache-2.0
#include "backend/sim/calls.hpp"

#include <algorithm>
#include <limits>
#include <span>

#include "core/text.hpp"

namespace isthmus::sim {
namespace {

constexpr std::array<const char*, k_calls> k_names = {
    "allocate", "free",  "context",  "queue",  "copy", "copy_2d",   "copy_ranges", "fill",
    "fence",    "event", "prefetch", "advise", "map",  "operation", "any",         "violation"};

}  // namespace

const char* call_name(Call kind) noexcept { return k_names[static_cast<std::size_t>(kind)]; }

std::optional<Call> find_call(std::string_view name) noexcept {
  const auto* found = std::find(k_names.begin(), k_names.end(), name);
  if (found == k_names.end()) {
    return std::nullopt;
  }
  return static_cast<Call>(found - k_names.begin());
}

std::string call_names() { return joined(std::span{k_names}.first(k_names.size() - 1), ", "); }

Error CallLog::record(Call kind, const std::string& filter) {
  ++count(kind);
  ++count(Call::any);
  const bool fails = take_fault(kind) || take_fault(Call::any);
  if (!fails || kind == Call::free) {
    return {};
  }
  const auto code = kind == Call::allocate ? ISTHMUS_ERROR_OUT_OF_MEMORY : ISTHMUS_ERROR_DRIVER;
  return fail(
      code, "{}: {} call number {} (number {} of all calls) failed, as the option 'fail' requests",
      filter, call_name(kind), call_count(kind), call_count(Call::any));
}

Error CallLog::record_operation(const std::string& filter) {
  ++count(Call::operation);
  if (!take_fault(Call::operation)) {
    return {};
  }
  return fail(ISTHMUS_ERROR_DRIVER, "{}: operation number {} failed, as the option 'fail' requests",
              filter, call_count(Call::operation));
}

void CallLog::add(const Fault& fault) {
  const auto current_count = call_count(fault.kind);
  const auto max_increment = std::numeric_limits<std::uint64_t>::max() - current_count;
  faults_.push_back({fault.kind, current_count + std::min(fault.nth, max_increment)});
}

bool CallLog::take_fault(Call kind) noexcept {
  const auto is_due = [&](const Fault& fault) {
    return fault.kind == kind && fault.nth == call_count(kind);
  };
  return std::erase_if(faults_, is_due) != 0;
}

}  // namespace isthmus::sim
