// SPDX-License-Identifier: Apache-2.0
#pragma once
// A list of fixed capacity for uses that are found under a lock, where nothing can be allocated;
// they are processed after the lock is released. Not thread-safe.

#include <array>
#include <cstddef>

#include "memory/use_index.hpp"

namespace isthmus {

// Entries hold plain pointers, so that unused entries need no initialization; most lists stay
// short.
class found_uses {
 public:
  static constexpr std::size_t k_most = 32;

  found_uses() noexcept {}
  found_uses(const found_uses&) = delete;
  found_uses& operator=(const found_uses&) = delete;
  ~found_uses() {
    for_each([](const ref<event>&, bool) {});
  }
  // Precondition: the list has fewer than `k_most` uses.
  void push_back(const pending_use& found) noexcept {
    all_[count_++] = {ref<event>{found.ended}.detach(), found.what.is_of_others};
  }
  // Calls visit(event, whether the use is the previous owner's) once for each use; `visit` may
  // throw.
  template <class Visit>
  void for_each(Visit&& visit) {
    while (visited_ != count_) {
      const auto& each = all_[visited_++];
      visit(ref<event>::adopt(each.ended), each.is_of_others);
    }
  }

 private:
  struct found_use {
    event* ended;  // holds a reference until it is visited
    bool is_of_others;
  };
  std::array<found_use, k_most> all_;  // valid up to `count_`
  std::size_t count_ = 0;
  std::size_t visited_ = 0;
};

}  // namespace isthmus
