// SPDX-License-Identifier: Apache-2.0
#include "memory/base/pool_list.hpp"

#include <algorithm>

#include "core/lock_guard.hpp"

namespace isthmus {

void PoolList::add(ListedPool& member) {
  const LockGuard hold{lock_};
  members_.push_back(&member);
}

void PoolList::remove(ListedPool& member) noexcept {
  const LockGuard hold{lock_};
  std::erase(members_, &member);
}

std::vector<Ref<ListedPool>> PoolList::alive(const std::function<bool(const ListedPool&)>& fits) {
  std::vector<Ref<ListedPool>> found;
  const LockGuard hold{lock_};
  found.reserve(members_.size());
  for (auto* each : members_) {
    if ((!fits || fits(*each)) && each->try_retain()) {
      found.push_back(Ref<ListedPool>::adopt(each));
    }
  }
  return found;
}

}  // namespace isthmus
