// SPDX-License-Identifier: Apache-2.0
#pragma once
// States of a unified buffer and winners of a write conflict. The states have PyDotCompute's names.

#include <isthmus/experimental.h>

#include <cstdint>

namespace isthmus {

enum class BufferState : std::int32_t {
  uninitialized = ISTHMUS_UNIFIED_UNINITIALIZED,  // neither copy was requested yet
  host_only = ISTHMUS_UNIFIED_HOST_ONLY,
  device_only = ISTHMUS_UNIFIED_DEVICE_ONLY,
  synchronized = ISTHMUS_UNIFIED_SYNCHRONIZED,
  host_dirty = ISTHMUS_UNIFIED_HOST_DIRTY,
  device_dirty = ISTHMUS_UNIFIED_DEVICE_DIRTY,
};

enum class Winner : std::int32_t {
  none = ISTHMUS_WINNER_NONE,
  host = ISTHMUS_WINNER_HOST,
  device = ISTHMUS_WINNER_DEVICE,
};

}  // namespace isthmus
