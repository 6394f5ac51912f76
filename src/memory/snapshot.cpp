#include "memory/snapshot.hpp"

namespace isthmus {
namespace {

// Whether this thread is behind the end of `last`, as in destructors that call the library.
thread_local constinit bool is_gone = false;
struct remembered {
  error failure;
  shortage of;
  ~remembered() { is_gone = true; }
};
thread_local remembered last;

}  // namespace

void remember_shortage(const error& failure, const shortage& of) noexcept {
  // The error that all failures without memory share tells of none of them.
  if (!is_gone && !failure.is(error::no_memory())) {
    last.failure = failure;
    last.of = of;
  }
}

const shortage* shortage_of(const error& failure) noexcept {
  return !is_gone && failure.is(last.failure) ? &last.of : nullptr;
}

}  // namespace isthmus
