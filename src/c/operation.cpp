// SPDX-License-Identifier: Apache-2.0
#include "c/operation.hpp"

#include <algorithm>
#include <span>

namespace isthmus::c {
namespace {

// Takes ownership of `owners`: they are released even if this function throws.
void take_owners(std::span<const isthmus_owner_t> owners, std::vector<Owner>& result) {
  try {
    result.reserve(owners.size());
  } catch (const std::bad_alloc&) {
    std::for_each(owners.begin(), owners.end(),
                  [](const isthmus_owner_t& owner) { const Owner released_now{owner}; });
    throw;
  }
  for (const auto& owner : owners) {
    result.emplace_back(owner);
  }
}

}  // namespace

Result<TransferOptions> options_of(const isthmus_operation_t* operation, bool blocking) {
  TransferOptions options;
  options.blocking = blocking;
  if (operation == nullptr) {
    return options;
  }
  ISTHMUS_TRY(check_struct_size(*operation, "operation"));
  ISTHMUS_TRY(check_array(operation->owners, "operation->owners", operation->owner_count));
  take_owners({operation->owners, operation->owner_count}, options.owners);
  auto after = events_of(operation->after, operation->after_count);
  ISTHMUS_TRY(after);
  options.after = *std::move(after);
  return options;
}

}  // namespace isthmus::c
