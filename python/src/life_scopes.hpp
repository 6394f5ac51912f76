#pragma once
// `with isthmus.scratch():` and `with isthmus.allocated():`: what new buffers are told to, in the
// thread or task that they are made in.

#include <chrono>

#include "buffer.hpp"

namespace isthmus::python {

// How many of either are entered, in all threads. Guarded by the interpreter's lock.
extern std::size_t open_life_scopes;

// Tells the scopes of this context of a new buffer, whose making took so long.
void tell_scopes(const buffer& made, std::chrono::nanoseconds taken);
// Tells those of an `allocated` that counted its making; it is counted no more.
void tell_of_free(nb::object& counted_by) noexcept;

// From its making on, while somebody wants to know.
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
