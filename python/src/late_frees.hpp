#pragma once
// Frees that have to wait: of blocks that a stream uses which is being captured into a graph, so
// that it cannot tell now what it has of them (stream_notes.hpp). Tried again when somebody next
// allocates or frees.

#include <isthmus/isthmus.h>

#include <atomic>
#include <cstddef>

namespace isthmus::python {

struct freed_block {
  isthmus_resource_t* to;
  isthmus_queue_t* behind;
  void* pointer;
  std::size_t nbytes;
};

class late_frees {
 public:
  // Frees it, or sees to it later. Throws allocator_failure where the resource does not take it,
  // std::bad_alloc without memory for the list; then it is lost.
  static void free(const freed_block& gone);
  // Tries one of them: a stream is captured for many calls, and each shall cost little.
  static void try_one() noexcept {
    if (count().load(std::memory_order_relaxed) != 0) [[unlikely]] {
      try_again(1);
    }
  }
  // Whether there were any.
  static bool try_all() noexcept {
    const auto waiting = count().load(std::memory_order_relaxed);
    try_again(waiting);
    return waiting != 0;
  }

 private:
  static std::atomic<std::size_t>& count() noexcept {
    static constinit std::atomic<std::size_t> waiting{0};
    return waiting;
  }
  static void try_again(std::size_t most) noexcept;
};

}  // namespace isthmus::python
