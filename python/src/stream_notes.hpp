#pragma once
// Streams that frameworks said use a block beside its own. What they have is asked for when the
// block is freed, not when it is said: work that is put there in between counts too.

#include <isthmus/isthmus.h>

namespace isthmus::python {

class stream_notes {
 public:
  // Each queue is noted once for a block. Throws std::bad_alloc.
  static void add(void* block, isthmus_queue_t* queue);
  // The block goes back behind what is on the streams noted, by the free that comes next. False,
  // told on the standard error stream, where that cannot be: then it must not be freed.
  [[nodiscard]] static bool settle(void* block) noexcept;
};

}  // namespace isthmus::python
