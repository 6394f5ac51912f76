// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a caller passes with every transfer besides its endpoints, and what it receives. Not
// thread-safe.

#include <vector>

#include "backend/event.hpp"
#include "core/owner.hpp"
#include "core/status.hpp"

namespace isthmus {

// Events that an operation waits for, and objects that must stay alive until it has completed.
struct TransferOptions {
  std::vector<Ref<Event>> after;
  std::vector<Owner> owners;
  bool blocking = true;
  // Whether the operation fails if an earlier copy into the memory that it reads fails
  // (memory/records/content_list.hpp). If false, the operation is only ordered after such copies.
  bool reads_contents = true;
};

// The event of a submitted operation. Null if the call blocked and the operation has completed.
using Submitted = Result<Ref<Event>>;

}  // namespace isthmus
