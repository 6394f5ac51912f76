// SPDX-License-Identifier: Apache-2.0
// Parsing of sizes, and budgets.

#include "memory/base/budget.hpp"
#include "c/common.hpp"
#include "core/quantities.hpp"
#include "core/text.hpp"
#include "memory/base/host_memory.hpp"
#include "os/process.hpp"

using namespace isthmus;
using namespace isthmus::c;

namespace {

Error not_bytes_error(std::string_view text) {
  if (const auto spellings = both_spellings(text)) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "{} is ambiguous: write {}", quoted(text),
                *spellings);
  }
  return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
              "{} is not a number of bytes: use {}, or a share of 0 % to 100 % (\"80%\")",
              quoted(text), describe(Unit::bytes));
}

Result<std::uint64_t> share_of(std::string_view text, const Device* device, UsmKind kind) {
  if (!parse_share(text, 0)) {
    return not_bytes_error(text);
  }
  if (device == nullptr || kind_capability(kind) == 0) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "{} is a share, which needs a device and a memory kind: pass both, or use {}",
                quoted(text), describe(Unit::bytes));
  }
  return *parse_share(text, memory_for(*device, kind));
}

}  // namespace

isthmus_status_t isthmus_bytes_parse(const char* text, isthmus_device_t* device,
                                     isthmus_kind_t kind, uint64_t* bytes) noexcept {
  return entry(ISTHMUS_NEEDS(text, bytes), [&]() -> Result<void> {
    const std::string_view input{text};
    const auto quantity = parse_quantity(input, Unit::bytes);
    return return_value(
        quantity ? Result<std::uint64_t>{*quantity} : share_of(input, object(device), kind), bytes);
  });
}

isthmus_status_t isthmus_budget_create(uint64_t limit_bytes, isthmus_budget_t** budget) noexcept {
  return entry(ISTHMUS_NEEDS(budget), [&]() -> Result<void> {
    if (limit_bytes == 0) {
      return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "a budget cannot be 0 bytes: use at least 1");
    }
    *budget = handle(make_ref<isthmus::Budget>(limit_bytes).detach());
    return {};
  });
}

void isthmus_budget_retain(isthmus_budget_t* budget) noexcept {
  if (budget != nullptr) {
    object(budget)->retain();
  }
}

void isthmus_budget_release(isthmus_budget_t* budget) noexcept {
  if (budget != nullptr && !os::is_forked_child()) {
    object(budget)->release();
  }
}

isthmus_status_t isthmus_budget_info(isthmus_budget_t* budget,
                                     isthmus_budget_info_t* info) noexcept {
  return driver_entry_after_releases(ISTHMUS_NEEDS(budget, info), [&]() -> Result<void> {
    ISTHMUS_TRY(check_struct_size(*info, "info"));
    const auto state = object(budget)->state();
    info->limit_bytes = state.limit_bytes;
    info->held_bytes = state.held_bytes;
    info->free_bytes = state.free_bytes;
    info->peak_held_bytes = state.peak_held_bytes;
    info->pools = state.pools;
    info->refusals = state.refusals;
    info->released_bytes = state.released_bytes;
    return {};
  });
}
