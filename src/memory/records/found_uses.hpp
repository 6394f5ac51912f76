// SPDX-License-Identifier: Apache-2.0
#pragma once
// A list of fixed capacity for uses that are collected under a lock, where nothing may be
// allocated, and processed after the lock is released. Not thread-safe.

#include <array>
#include <cstddef>

#include "core/expects.hpp"
#include "memory/records/use_index.hpp"

namespace isthmus {

// Entries hold plain pointers, so that unused entries need no initialization. Most lists are short.
class FoundUses {
 public:
  static constexpr std::size_t k_max = 32;

  FoundUses() noexcept {}
  FoundUses(const FoundUses&) = delete;
  FoundUses& operator=(const FoundUses&) = delete;
  ~FoundUses() {
    for_each([](const Ref<Event>&, bool) {});
  }
  void push_back(const PendingUse& use) noexcept {
    ISTHMUS_EXPECTS(count_ < k_max, count_);
    all_[count_++] = {Ref<Event>{use.event}.detach(), use.use.is_previous_owners};
  }
  // Calls visit(event, is_previous_owners) once for each use. `visit` may throw.
  template <class Visit>
  void for_each(Visit&& visit) {
    while (visited_ != count_) {
      const auto& each = all_[visited_++];
      visit(Ref<Event>::adopt(each.event), each.is_previous_owners);
    }
  }

 private:
  struct FoundUse {
    Event* event;  // holds a reference until it is visited
    bool is_previous_owners;
  };
  std::array<FoundUse, k_max> all_;  // valid up to `count_`
  std::size_t count_ = 0;
  std::size_t visited_ = 0;
};

}  // namespace isthmus
