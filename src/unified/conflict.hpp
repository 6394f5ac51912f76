// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reports write conflicts of a unified buffer. Not thread-safe: the buffer's lock guards the state.

#include "core/range_set.hpp"
#include "core/status.hpp"
#include "unified/unified_copies.hpp"

namespace isthmus {

// Returns CONFLICT if both sides wrote the same bytes of the range. They are not copied until the
// conflict is resolved.
[[nodiscard]] Result<void> check_conflict(const UnifiedCopies& copies, const ByteRange& range);

}  // namespace isthmus
