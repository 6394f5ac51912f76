// SPDX-License-Identifier: Apache-2.0
#pragma once
// A scenario of steps, each of which may throw an error of the library.

#include "support/backends.hpp"

namespace support {

inline constexpr int k_max_calls = 4000;  // more means that a scenario never succeeds

class steps {
 public:
  [[nodiscard]] int failures() const noexcept { return failures_; }

 protected:
  // Errors are expected here; only INTERNAL would be a bug of the library.
  template <class Step>
  bool attempt(Step&& step) {
    try {
      step();
      return true;
    } catch (const im::error& problem) {
      ++failures_;
      EXPECT_NE(problem.status(), im::status::internal) << problem.what();
      EXPECT_NE(problem.status(), im::status::timeout) << "it hangs";
      EXPECT_FALSE(std::string_view(problem.what()).empty());
      return false;
    }
  }
  static void end(const im::event& event) {
    if (!event.wait_for(20s)) im::raise(im::status::timeout, "an event does not end");
  }

 private:
  int failures_ = 0;
};

}  // namespace support
