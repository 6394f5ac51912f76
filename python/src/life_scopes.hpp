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
void tell_scopes(const Buffer& made, std::chrono::nanoseconds taken);
// Reports the end to the `allocated` scopes that counted the creation; they are dropped.
void tell_of_free(nb::object& counted_by) noexcept;

// Measures the time since its construction, if any scope is entered.
class CreationClock {
 public:
  CreationClock() noexcept
      : is_wanted_{open_life_scopes != 0},
        begin_{is_wanted_ ? Clock::now() : Clock::time_point{}} {}
  [[nodiscard]] bool is_wanted() const noexcept { return is_wanted_; }
  void tell(const Buffer& made) const {
    if (is_wanted_) {
      tell_scopes(made, Clock::now() - begin_);
    }
  }

 private:
  using Clock = std::chrono::steady_clock;
  bool is_wanted_;
  Clock::time_point begin_;
};

}  // namespace isthmus::python
