// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs a function at the end of a scope unless it was dismissed, to roll back if the rest fails
// with an error or an exception.

#include <utility>

namespace isthmus {

template <class Function>
class [[nodiscard]] Undo {
 public:
  explicit Undo(Function function) noexcept : function_{std::move(function)} {}
  Undo(const Undo&) = delete;
  Undo& operator=(const Undo&) = delete;
  ~Undo() {
    if (armed_) {
      function_();
    }
  }
  // Called when everything has succeeded: the function will not run.
  void dismiss() noexcept { armed_ = false; }

 private:
  Function function_;
  bool armed_ = true;
};

}  // namespace isthmus
