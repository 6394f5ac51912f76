#pragma once
// Pools that somebody looks after while others make them and let them go.

#include <cstddef>
#include <functional>
#include <mutex>
#include <vector>

#include "core/ref.hpp"

namespace isthmus {

class pool;

// Safe for threads. It keeps no pool alive: a pool leaves before it goes.
class pool_list {
 public:
  // Throws std::bad_alloc.
  void join(pool& member);
  // A pool that never joined too.
  void leave(pool& member) noexcept;
  // Those that somebody refers to, and that `fits` accepts where it is given, which is called under
  // the lock: no reference is taken to another one, so none of these ends here. Throws
  // std::bad_alloc.
  [[nodiscard]] std::vector<ref<pool>> alive(
      const std::function<bool(const pool&)>& fits = nullptr);

  // Calls `look` with each, which must not let go of one: under the lock.
  template <class Look>
  void look_at_each(Look&& look) {
    const std::lock_guard hold{lock_};
    for (auto* each : members_) {
      look(*each);
    }
  }

 private:
  std::mutex lock_;
  std::vector<pool*> members_;
};

}  // namespace isthmus
