#pragma once
// Streams that frameworks said use a block beside its own. What they have is asked for when the
// block is freed, not when it is said: work that is put there in between counts too.

#include <isthmus/isthmus.h>

namespace isthmus::python {

class stream_notes {
 public:
  // Each queue is noted once for a block. Throws std::bad_alloc.
  static void add(void* block, isthmus_queue_t* queue);

  // settled: the block goes back behind what is on the streams noted, by the free that comes next.
  // not_yet: a stream is being captured into a graph and cannot tell what it has; nothing may free
  // the block before another call has settled it. lost: it must not be freed at all, which was told
  // on the standard error stream.
  enum class outcome { settled, not_yet, lost };
  [[nodiscard]] static outcome settle(void* block) noexcept;
};

}  // namespace isthmus::python
