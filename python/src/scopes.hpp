#pragma once
// Statistics of what a thread or asyncio task allocates: a context variable says in which scope it
// is.

#include "common.hpp"

namespace isthmus::python {

extern bool scopes_in_use;
// The scope that this context is in, NULL for none; borrowed while the context stays as it is.
[[nodiscard]] isthmus_scope_t* current_scope();

// While it lives the thread is in its context's scope for the library. Needs the interpreter's lock
// to be made, not to go.
class within_scope {
 public:
  within_scope()
      : entered_{scopes_in_use}, outer_{entered_ ? isthmus_scope_swap(current_scope()) : nullptr} {}
  within_scope(const within_scope&) = delete;
  within_scope& operator=(const within_scope&) = delete;
  ~within_scope() {
    if (entered_) {
      isthmus_scope_swap(outer_);
    }
  }

 private:
  const bool entered_;
  isthmus_scope_t* const outer_;
};

}  // namespace isthmus::python
