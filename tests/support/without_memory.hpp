// Makes allocations of this thread fail, where a file of the program includes no_memory.hpp.
#pragma once

#include <array>
#include <string>

namespace support {

// What fails after the allocations that are served.
enum class shortage {
  lasting,  // all
  single    // one: what the library makes or reports because of that has memory
};
inline constexpr std::array k_shortages{shortage::lasting, shortage::single};

// Allocations of this thread until one fails, that one included; negative: none fails.
inline thread_local long allocations_left = -1;
inline thread_local shortage kind_of_shortage = shortage::lasting;
inline thread_local bool allocation_has_failed = false;

[[nodiscard]] inline bool has_memory() noexcept {
  if (allocations_left > 0) --allocations_left;
  if (allocations_left != 0) return true;
  allocation_has_failed = true;
  if (kind_of_shortage == shortage::single) allocations_left = -1;
  return false;
}

// While it lives the thread that made it has memory for `served` allocations.
class without_memory {
 public:
  explicit without_memory(long served = 0, shortage kind = shortage::lasting) noexcept {
    allocations_left = served + 1;
    kind_of_shortage = kind;
    allocation_has_failed = false;
  }
  without_memory(const without_memory&) = delete;
  without_memory& operator=(const without_memory&) = delete;
  ~without_memory() { allocations_left = -1; }

  [[nodiscard]] static bool failed() noexcept { return allocation_has_failed; }
};

// While it lives all allocations of the thread are served, whatever is around it.
class with_memory {
 public:
  with_memory() noexcept : before_{allocations_left} { allocations_left = -1; }
  with_memory(const with_memory&) = delete;
  with_memory& operator=(const with_memory&) = delete;
  ~with_memory() { allocations_left = before_; }

 private:
  const long before_;
};

inline std::string describe(long served, shortage kind) {
  return (kind == shortage::single ? "a single failure after " : "no memory after ") +
         std::to_string(served);
}

// Calls `body(served, kind)` with memory for more and more allocations, until it says that none has
// failed, for each kind of shortage.
template <class Body>
void fail_each_allocation(Body body) {
  for (const shortage kind : k_shortages) {
    for (long served = 0; body(served, kind); ++served) {
    }
  }
}

}  // namespace support
