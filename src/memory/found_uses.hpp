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
class FoundUses {
 public:
  static constexpr std::size_t k_max = 32;

  FoundUses() noexcept {}
  FoundUses(const FoundUses&) = delete;
  FoundUses& operator=(const FoundUses&) = delete;
  ~FoundUses() {
    for_each([](const Ref<Event>&, bool) {});
  }
  // Precondition: the list has fewer than `k_max` uses.
  void push_back(const PendingUse& use) noexcept {
    all_[count_++] = {Ref<Event>{use.event}.detach(), use.use.is_previous_owners};
  }
  // Calls visit(event, whether the use is the previous owner's) once for each use; `visit` may
  // throw.
  template <class Visit>
  void for_each(Visit&& visit) {
    while (visited_ != count_) {
      const auto& each = all_[visited_++];
      visit(Ref<Event>::adopt(each.event), each.is_external);
    }
  }

 private:
  struct FoundUse {
    Event* event;  // holds a reference until it is visited
    bool is_external;
  };
  std::array<FoundUse, k_max> all_;  // valid up to `count_`
  std::size_t count_ = 0;
  std::size_t visited_ = 0;
};

}  // namespace isthmus
