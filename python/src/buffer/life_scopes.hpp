// SPDX-License-Identifier: Apache-2.0
#pragma once
// The scopes of `with isthmus.scratch():` and `with isthmus.allocated():`. A new buffer is reported
// to the open scopes of the thread or asyncio task that creates it. Needs the interpreter's lock.

#include <chrono>

#include "buffer/buffer.hpp"

namespace isthmus::python {

// Number of scopes of both kinds that are entered, in all threads. Guarded by the interpreter's
// lock.
extern std::size_t open_scope_count;

// Reports a new buffer, and the time its creation took, to the scopes of this context.
void record_allocation(const Buffer& buffer, std::chrono::nanoseconds duration);
// Reports that a buffer was freed to the `allocated` scopes that counted its creation, and drops
// the references to them.
void record_free(nb::object& counted_by) noexcept;

// Measures the time since its construction, if any scope is entered.
class CreationClock {
 public:
  CreationClock() noexcept
      : is_active_{open_scope_count != 0},
        begin_{is_active_ ? Clock::now() : Clock::time_point{}} {}
  [[nodiscard]] bool is_active() const noexcept { return is_active_; }
  void record(const Buffer& buffer) const {
    if (is_active_) {
      record_allocation(buffer, Clock::now() - begin_);
    }
  }

 private:
  using Clock = std::chrono::steady_clock;
  bool is_active_;
  Clock::time_point begin_;
};

}  // namespace isthmus::python
