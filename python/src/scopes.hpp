#pragma once
// Statistics of what a thread or asyncio task allocates: a context variable says in which scope it
// is.

#include "common.hpp"

namespace isthmus::python {

// The scope that this context is in; empty for none.
[[nodiscard]] scope_handle current_scope();

// While it lives the thread is in its context's scope for the library, where the context is in one.
// Holds it: a function that is asked for memory meanwhile may leave it. Needs the interpreter's
// lock to be made, not to go.
class within_scope {
 public:
  within_scope()
      : scope_{current_scope()}, outer_{scope_ ? isthmus_scope_swap(scope_.get()) : nullptr} {}
  within_scope(const within_scope&) = delete;
  within_scope& operator=(const within_scope&) = delete;
  ~within_scope() {
    if (scope_) {
      isthmus_scope_swap(outer_);
    }
  }

 private:
  const scope_handle scope_;
  isthmus_scope_t* const outer_;
};

}  // namespace isthmus::python
