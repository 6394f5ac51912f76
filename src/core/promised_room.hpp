// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reserves capacity in a list that a lock guards, so that a later addition that must not fail needs
// no memory.

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <mutex>
#include <vector>

namespace isthmus {

// After this call `list` can grow by one entry more than the `reserved` ones before without
// allocating, and `reserved` counts it. Returns `number` as read under the lock at that moment.
// Throws std::bad_alloc, and then nothing has changed. Pre: `lock`, which guards all three, is not
// held. Memory is allocated outside of the lock.
template <class Entry, class Lock, class Count, class Number>
Number reserve_entry(std::vector<Entry>& list, Lock& lock, Count& reserved, const Number& number) {
  {
    const std::lock_guard hold{lock};
    if (list.capacity() > list.size() + reserved) [[likely]] {
      ++reserved;
      return number;
    }
  }
  std::vector<Entry> wider;
  for (;;) {
    std::size_t needed = 0;
    {
      const std::lock_guard hold{lock};
      needed = list.size() + reserved + 1;
      if (list.capacity() < needed && wider.capacity() >= needed) {
        std::move(list.begin(), list.end(), std::back_inserter(wider));
        list.swap(wider);
      }
      if (list.capacity() >= needed) {
        ++reserved;
        return number;
      }
    }
    wider.reserve(needed == 1 ? 1 : 2 * needed);
  }
}

}  // namespace isthmus
