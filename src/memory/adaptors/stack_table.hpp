// SPDX-License-Identifier: Apache-2.0
#pragma once
// The stacks in which blocks were allocated, each stored once, since many blocks come from few call
// sites.

#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace isthmus {

// Addresses of native code, which only `describe` looks up, and the text of the program's function
// on frames that are not native.
struct CallStack {
  std::vector<void*> frames;
  std::string text;

  // A line for each frame outside the library, the innermost first.
  [[nodiscard]] std::string describe() const;
};

// Thread-safe. What it returns lives as long as the table.
class StackTable {
 public:
  // Throws std::bad_alloc.
  [[nodiscard]] const CallStack& intern(std::span<void* const> frames, std::string_view text);

 private:
  std::mutex lock_;
  std::unordered_map<std::string, CallStack> stacks_;  // by the bytes of both members
};

}  // namespace isthmus
