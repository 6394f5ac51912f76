// SPDX-License-Identifier: Apache-2.0
#include "memory/pool_list.hpp"

#include <algorithm>

#include "memory/pool.hpp"

namespace isthmus {

void pool_list::join(pool& member) {
  const std::lock_guard hold{lock_};
  members_.push_back(&member);
}

void pool_list::leave(pool& member) noexcept {
  const std::lock_guard hold{lock_};
  std::erase(members_, &member);
}

std::vector<ref<pool>> pool_list::alive(const std::function<bool(const pool&)>& fits) {
  std::vector<ref<pool>> found;
  const std::lock_guard hold{lock_};
  found.reserve(members_.size());
  for (auto* each : members_) {
    if ((!fits || fits(*each)) && each->try_retain()) {
      found.push_back(ref<pool>::adopt(each));
    }
  }
  return found;
}

}  // namespace isthmus
