#pragma once
// What is to be undone if the rest of a function fails, by an error or by an exception.

#include <utility>

namespace isthmus {

template <class Function>
class [[nodiscard]] undo {
 public:
  explicit undo(Function function) noexcept : function_{std::move(function)} {}
  undo(const undo&) = delete;
  undo& operator=(const undo&) = delete;
  ~undo() {
    if (wanted_) {
      function_();
    }
  }
  // All went well.
  void dismiss() noexcept { wanted_ = false; }

 private:
  Function function_;
  bool wanted_ = true;
};

}  // namespace isthmus
