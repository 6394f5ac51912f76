// SPDX-License-Identifier: Apache-2.0
#pragma once
// The call stacks of allocations, each stored once, since few call sites allocate most blocks.

#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/mutex.hpp"
#include "core/thread_safety.hpp"

namespace isthmus {

// The addresses of native frames, which only `describe` resolves, and the text that the program's
// function returned for frames that are not native.
struct CallStack {
  std::vector<void*> frames;
  std::string text;

  // A line for each frame outside the library, the innermost first.
  [[nodiscard]] std::string describe() const;
};

// Thread-safe. Returned stacks live as long as the table.
class StackTable {
 public:
  // Throws std::bad_alloc.
  [[nodiscard]] const CallStack& intern(std::span<void* const> frames, std::string_view text);

 private:
  Mutex lock_;
  // Keyed by the bytes of both members.
  std::unordered_map<std::string, CallStack> stacks_ ISTHMUS_GUARDED_BY(lock_);
};

}  // namespace isthmus
