// SPDX-License-Identifier: Apache-2.0
#pragma once
// Common steps of every entry point that submits an operation. Thread-safe.

#include "c/common.hpp"
#include "transfer/transfer.hpp"

namespace isthmus::c {

// Takes ownership of the operation's owners before anything can fail except the checks of the
// structure itself, so that all later failures release them.
[[nodiscard]] Result<TransferOptions> options_of(const isthmus_operation_t* operation,
                                                 bool blocking);

// The body of an entry point, as `driver_entry`: calls `call(options)`, which returns the submitted
// operation, and returns its event, or blocks if `event` is NULL.
template <class Operate>
isthmus_status_t operate(const RequiredPointers& required, const isthmus_operation_t* operation,
                         isthmus_event_t** event, Operate&& call) noexcept {
  return guarded([&]() -> Result<void> {
    auto options = options_of(operation, event == nullptr);
    ISTHMUS_TRY(options);
    ISTHMUS_TRY(check_with_driver(required));
    return return_event(call(*std::move(options)), event);
  });
}

}  // namespace isthmus::c
