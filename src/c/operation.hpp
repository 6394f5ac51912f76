// SPDX-License-Identifier: Apache-2.0
#pragma once
// Common steps of every entry point that submits an operation. Thread-safe.

#include "c/common.hpp"
#include "os/process.hpp"
#include "transfer/transfer.hpp"

namespace isthmus::c {

// Takes ownership of the operation's owners first, so that they are released in any case.
[[nodiscard]] Result<TransferOptions> options_of(const isthmus_operation_t* operation,
                                                 bool blocking);

template <class Operate>
isthmus_status_t operate(const isthmus_operation_t* operation, isthmus_event_t** event,
                         Operate&& call) noexcept {
  return guarded([&]() -> Result<void> {
    auto options = options_of(operation, event == nullptr);
    ISTHMUS_TRY(options);
    if (os::is_forked_child()) {
      return forked_child_error();
    }
    Submitted completion = call(*std::move(options));
    ISTHMUS_TRY(completion);
    if (event != nullptr) {
      *event = handle(completion->detach());
    }
    return {};
  });
}

}  // namespace isthmus::c
