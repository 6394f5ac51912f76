// SPDX-License-Identifier: Apache-2.0
#pragma once
// Streams on which frameworks reported a use of a block, beside its own. Their work is recorded
// when the block is freed, not when it is reported: work submitted in between counts too.
// Thread-safe; needs no interpreter.

#include <isthmus/isthmus.h>

namespace isthmus::python {

class StreamNotes {
 public:
  // Notes each queue once per block. Throws std::bad_alloc.
  static void add(void* block, isthmus_queue_t* queue);

  // settled: the next free returns the block after the work on the noted streams. not_yet: a stream
  // is being captured into a graph and cannot report its work; nothing may free the block before
  // another call has settled it. lost: it must not be freed at all, which was reported on the
  // standard error stream.
  enum class Outcome { settled, not_yet, lost };
  [[nodiscard]] static Outcome settle(void* block) noexcept;
};

}  // namespace isthmus::python
