#include "memory/snapshot.hpp"

namespace isthmus {
namespace {

// Whether this thread is behind the end of `last`, as in destructors that call the library.
thread_local constinit bool is_gone = false;
struct remembered {
  error failure;
  snapshot seen;
  ~remembered() { is_gone = true; }
};
thread_local remembered last;

}  // namespace

void remember_snapshot(const error& failure, const snapshot& seen) noexcept {
  // The error that all failures without memory share tells of none of them.
  if (!is_gone && !failure.is(error::no_memory())) {
    last.failure = failure;
    last.seen = seen;
  }
}

const snapshot* snapshot_of(const error& failure) noexcept {
  return !is_gone && failure.is(last.failure) ? &last.seen : nullptr;
}

}  // namespace isthmus
