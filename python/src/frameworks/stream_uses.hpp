// SPDX-License-Identifier: Apache-2.0
#pragma once
// The streams, other than a block's own, on which frameworks reported a use of the block. Their
// work is recorded when the block is freed, not when it is reported: work submitted in between
// counts too. Thread-safe; needs no interpreter.

#include <isthmus/isthmus.h>

namespace isthmus::python {

class StreamUses {
 public:
  // Records each queue once per block. Throws std::bad_alloc.
  static void add(void* block, isthmus_queue_t* queue);

  // recorded: the next free returns the block after the work on its streams. pending: a stream is
  // being captured into a graph and cannot report its work; nothing may free the block before
  // another call returns `recorded`. leaked: it must not be freed at all, which was reported on the
  // standard error stream.
  enum class Outcome { recorded, pending, leaked };
  [[nodiscard]] static Outcome record_uses(void* block) noexcept;
};

}  // namespace isthmus::python
