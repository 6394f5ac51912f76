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

const char* call_name(call kind) noexcept { return k_names[static_cast<std::size_t>(kind)]; }

std::optional<call> find_call(std::string_view name) noexcept {
  const auto* found = std::find(k_names.begin(), k_names.end(), name);
  if (found == k_names.end()) {
    return std::nullopt;
  }
  return static_cast<call>(found - k_names.begin());
}

std::string call_names() { return joined(std::span{k_names}.first(k_names.size() - 1), ", "); }

error call_log::record(call kind, const std::string& filter) {
  ++count(kind);
  ++count(call::any);
  const bool fails = take_fault(kind) || take_fault(call::any);
  if (!fails || kind == call::free) {
    return {};
  }
  const auto code = kind == call::allocate ? ISTHMUS_ERROR_OUT_OF_MEMORY : ISTHMUS_ERROR_DRIVER;
  return fail(
      code, "{}: {} call number {} (number {} of all calls) failed, as the option 'fail' requests",
      filter, call_name(kind), made(kind), made(call::any));
}

error call_log::record_operation(const std::string& filter) {
  ++count(call::operation);
  if (!take_fault(call::operation)) {
    return {};
  }
  return fail(ISTHMUS_ERROR_DRIVER, "{}: operation number {} failed, as the option 'fail' requests",
              filter, made(call::operation));
}

void call_log::add(const fault& planned) {
  const auto so_far = made(planned.kind);
  const auto room = std::numeric_limits<std::uint64_t>::max() - so_far;
  faults_.push_back({planned.kind, so_far + std::min(planned.nth, room)});
}

bool call_log::take_fault(call kind) noexcept {
  const auto due = [&](const fault& planned) {
    return planned.kind == kind && planned.nth == made(kind);
  };
  return std::erase_if(faults_, due) != 0;
}

}  // namespace isthmus::sim
