// SPDX-License-Identifier: Apache-2.0
#pragma once
// `with isthmus.scratch():` and `with isthmus.allocated():`: the scopes that new buffers are
// reported to, those of the thread or task that creates them. Needs the interpreter's lock.

#include <chrono>

#include "buffer.hpp"

namespace isthmus::python {

// Number of scopes of both kinds that are entered, in all threads. Guarded by the interpreter's
// lock.
extern std::size_t open_life_scopes;

// Reports a new buffer, and the time its creation took, to the scopes of this context.
void tell_scopes(const buffer& made, std::chrono::nanoseconds taken);
// Reports the end to the `allocated` scopes that counted the creation; they are dropped.
void tell_of_free(nb::object& counted_by) noexcept;

// Measures the time since its construction, if any scope is entered.
class creation_clock {
 public:
  creation_clock() noexcept
      : is_wanted_{open_life_scopes != 0},
        begin_{is_wanted_ ? clock::now() : clock::time_point{}} {}
  [[nodiscard]] bool is_wanted() const noexcept { return is_wanted_; }
  void tell(const buffer& made) const {
    if (is_wanted_) {
      tell_scopes(made, clock::now() - begin_);
    }
  }

 private:
  using clock = std::chrono::steady_clock;
  bool is_wanted_;
  clock::time_point begin_;
};

}  // namespace isthmus::python
