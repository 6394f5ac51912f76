// SPDX-License-Identifier: Apache-2.0
#pragma once
// The bytes that a garbage collection frees, which memory/pressure.cpp starts when a device is out
// of memory. Guarded by the interpreter's lock.

#include "core/common.hpp"

namespace isthmus::python {

// Counts the bytes that a garbage collection frees on one device, the one that is out of memory.
// Counts only while `runs` is true. Views do not count.
struct CollectedGarbage {
  bool runs = false;
  std::uintptr_t device_key = 0;
  std::uint64_t bytes = 0;
};
inline CollectedGarbage collected;

}  // namespace isthmus::python
