// SPDX-License-Identifier: Apache-2.0
#pragma once
// The stacks in which blocks were allocated, each kept once, since many blocks come from few
// places.

#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace isthmus {

// Addresses of native code, which are looked up only by `describe`, and a text of the caller's
// function on frames that are not native.
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
  [[nodiscard]] const CallStack& keep(std::span<void* const> frames, std::string_view text);

 private:
  std::mutex lock_;
  std::unordered_map<std::string, CallStack> stacks_;  // by the bytes of both members
};

}  // namespace isthmus
