// SPDX-License-Identifier: Apache-2.0
// Makes allocations of the calling thread fail. Requires that one file of the program includes
// support/no_memory.hpp.
#pragma once

#include <array>
#include <string>

namespace support {

// Which allocations fail after the first `served` ones.
enum class shortage {
  lasting,  // all
  single    // one: handling and reporting the failure has memory
};
inline constexpr std::array k_shortages{shortage::lasting, shortage::single};

// The number of allocations of this thread up to and including the first that fails. 0: they fail;
// negative: none fails.
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

// During its lifetime the thread that made it has memory for `served` allocations.
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

// During its lifetime all allocations of the thread succeed, even inside a `without_memory`.
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

// For each kind of shortage calls `body(served, kind)` with `served` = 0, 1, 2 and so on until it
// returns false, which means that no allocation failed.
template <class Body>
void fail_each_allocation(Body body) {
  for (const shortage kind : k_shortages) {
    for (long served = 0; body(served, kind); ++served) {
    }
  }
}

}  // namespace support
