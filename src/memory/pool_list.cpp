// SPDX-License-Identifier: Apache-2.0
#include "memory/pool_list.hpp"

#include <algorithm>

#include "memory/pool.hpp"

namespace isthmus {

void PoolList::add(Pool& member) {
  const std::lock_guard hold{lock_};
  members_.push_back(&member);
}

void PoolList::remove(Pool& member) noexcept {
  const std::lock_guard hold{lock_};
  std::erase(members_, &member);
}

std::vector<Ref<Pool>> PoolList::alive(const std::function<bool(const Pool&)>& fits) {
  std::vector<Ref<Pool>> found;
  const std::lock_guard hold{lock_};
  found.reserve(members_.size());
  for (auto* each : members_) {
    if ((!fits || fits(*each)) && each->try_retain()) {
      found.push_back(Ref<Pool>::adopt(each));
    }
  }
  return found;
}

}  // namespace isthmus
