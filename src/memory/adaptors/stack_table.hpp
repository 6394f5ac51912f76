#pragma once
// The stacks that blocks were allocated in, each kept once: many blocks come from few places.

#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace isthmus {

// Addresses of native code, which are looked up when somebody wants to read them, and a text of
// whoever tells of frames that are none.
struct call_stack {
  std::vector<void*> frames;
  std::string text;

  // A line for each frame outside the library, the innermost first.
  [[nodiscard]] std::string describe() const;
};

// Safe for threads. What it gives lives as long as the table.
class stack_table {
 public:
  // Throws std::bad_alloc.
  [[nodiscard]] const call_stack& keep(std::span<void* const> frames, std::string_view text);

 private:
  std::mutex lock_;
  std::unordered_map<std::string, call_stack> stacks_;  // by their bytes
};

}  // namespace isthmus
