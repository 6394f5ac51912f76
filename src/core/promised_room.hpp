// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reserves capacity in a list that a lock guards, so that a later addition that must not fail needs
// no memory.

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <vector>

#include "core/lock_guard.hpp"

namespace isthmus {

// Increments `reserved`, the number of entries that `list` can still add without allocating.
// Returns the value of `number` at that moment, read under the lock. Throws std::bad_alloc without
// effect. Memory is allocated outside of the lock. The caller does not hold `lock`, which
// guards the other three arguments.
template <class Entry, class Lock, class Count, class Number>
Number reserve_entry(std::vector<Entry>& list, Lock& lock, Count& reserved, const Number& number) {
  {
    const LockGuard guard{lock};
    if (list.capacity() > list.size() + reserved) [[likely]] {
      ++reserved;
      return number;
    }
  }
  std::vector<Entry> larger;
  for (;;) {
    std::size_t needed = 0;
    {
      const LockGuard guard{lock};
      needed = list.size() + reserved + 1;
      if (list.capacity() < needed && larger.capacity() >= needed) {
        std::move(list.begin(), list.end(), std::back_inserter(larger));
        list.swap(larger);
      }
      if (list.capacity() >= needed) {
        ++reserved;
        return number;
      }
    }
    larger.reserve(needed == 1 ? 1 : 2 * needed);
  }
}

}  // namespace isthmus
