// SPDX-License-Identifier: Apache-2.0
#include "core/snapshots.hpp"

#include "core/interned.hpp"

namespace isthmus::python {
namespace {

nb::object text_or_none(const char* text) {
  return text != nullptr ? nb::object{nb::str(text)} : nb::none();
}

nb::object names_of_stages(std::uint32_t tried) {
  nb::list names;
  for (isthmus_oom_stage_t each = 0; const char* name = isthmus_oom_stage_name(each); ++each) {
    if ((tried >> each & 1U) != 0) {
      names.append(name);
    }
  }
  return nb::tuple(names);
}

}  // namespace

nb::object named_tuple(const char* name) {
  return nb::module_::import_("isthmus._pressure").attr(name);
}

nb::object to_snapshot(const isthmus_snapshot_t& raw) {
  const nb::object holder = named_tuple("TagHolder");
  nb::list holders;
  for (std::size_t each = 0; each < raw.holder_count; ++each) {
    const auto& entry = raw.holders[each];
    holders.append(holder(text_or_none(entry.tag), entry.bytes, entry.count));
  }
  return named_tuple("Snapshot")(
      raw.held_bytes, raw.live_bytes, raw.cached_bytes, raw.waiting_bytes, raw.free_bytes,
      raw.largest_free_bytes, nb::tuple(holders), text_or_none(raw.device),
      raw.device != nullptr ? nb::borrow(kind_name(raw.kind)) : nb::none(), raw.requested_bytes,
      names_of_stages(raw.oom_stages), text_or_none(raw.advice));
}

nb::object snapshot_of_error() {
  auto raw = sized<isthmus_snapshot_t>();
  return isthmus_error_snapshot(&raw) == ISTHMUS_OK ? to_snapshot(raw) : nb::none();
}

}  // namespace isthmus::python
