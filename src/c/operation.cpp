// SPDX-License-Identifier: Apache-2.0
#include "c/operation.hpp"

#include <algorithm>
#include <span>

namespace isthmus::c {
namespace {

// Takes ownership of `owners`: they are released even if this function throws.
void take_owners(std::span<const isthmus_owner_t> owners, std::vector<Owner>& out) {
  try {
    out.reserve(owners.size());
  } catch (const std::bad_alloc&) {
    std::for_each(owners.begin(), owners.end(),
                  [](const isthmus_owner_t& each) { const Owner released{each}; });
    throw;
  }
  for (const auto& each : owners) {
    out.emplace_back(each);
  }
}

}  // namespace

Result<TransferOptions> options_of(const isthmus_operation_t* operation, bool blocking) {
  TransferOptions options;
  options.blocking = blocking;
  if (operation == nullptr) {
    return options;
  }
  if (operation->struct_size < sizeof *operation) {
    return is_too_small("operation", operation->struct_size, sizeof *operation);
  }
  if (operation->owners == nullptr && operation->owner_count != 0) {
    return is_null("operation->owners");
  }
  take_owners({operation->owners, operation->owner_count}, options.owners);
  auto after = events_of(operation->after, operation->after_count);
  ISTHMUS_TRY(after);
  options.after = *std::move(after);
  return options;
}

}  // namespace isthmus::c
