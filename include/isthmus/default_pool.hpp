// The pool that arrays come out of where no resource is named: one for each kind of memory of a
// device in a context, made when it is first asked for.
//
//   isthmus::default_pool(isthmus::kind::device, queue).trim();   // gives back what is free
//
// Cost: a look-up under a lock. Threads: any. The pools live as long as the process; but of more
// than 32, those not asked for longest go, with what nothing was made of any more. One that gave
// plain pointers (low_level.hpp) stays: nobody else could take them back.
#pragma once

#include <isthmus/resource.hpp>

#include <algorithm>
#include <mutex>
#include <vector>

namespace isthmus {
inline namespace v1 {
namespace detail {

class pool_table {
 public:
  // Never destroyed: once `main` has returned no driver is called.
  [[nodiscard]] static pool_table& process() {
    static auto* const table = new pool_table;
    return *table;
  }

  [[nodiscard]] resource find(kind of, isthmus_queue_t* on) { return find(of, on, false); }
  // A pool that stays, since what it gives does not keep it.
  [[nodiscard]] resource keep(kind of, isthmus_queue_t* on) { return find(of, on, true); }

 private:
  // A pool keeps its context, so that no other one gets the key.
  struct key {
    kind of;
    std::uintptr_t home;
    isthmus_device_t* where;
    bool operator==(const key&) const noexcept = default;
  };
  struct entry {
    key of;
    resource pool;
    bool kept;
  };

  resource find(kind of, isthmus_queue_t* on, bool keeps) {
    const key wanted{of, isthmus_context_key(isthmus_queue_context(on)), isthmus_queue_device(on)};
    std::vector<entry> gone;  // lets go of pools outside the lock
    const std::lock_guard hold(lock_);
    const auto found = std::find_if(pools_.begin(), pools_.end(),
                                    [&](const entry& each) { return each.of == wanted; });
    if (found != pools_.end()) {
      found->kept = found->kept || keeps;
      std::rotate(pools_.begin(), found, found + 1);
      return pools_.front().pool;
    }
    auto made = resource::pool(context::share(isthmus_queue_context(on)), of, {},
                               device::share(isthmus_queue_device(on)));
    pools_.insert(pools_.begin(), {wanted, std::move(made), keeps});
    take_one_too_many(gone);
    return pools_.front().pool;
  }
  void take_one_too_many(std::vector<entry>& gone) {
    const auto may_go = [](const entry& each) { return !each.kept; };
    if (std::count_if(pools_.begin(), pools_.end(), may_go) <= k_most) return;
    const auto last = std::find_if(pools_.rbegin(), pools_.rend(), may_go);
    gone.push_back(std::move(*last));
    pools_.erase(std::prev(last.base()));
  }

  static constexpr std::ptrdiff_t k_most = 32;  // simulated devices come and go
  std::mutex lock_;
  std::vector<entry> pools_;  // the one asked for last in front
};

// The queue itself, or the default one.
[[nodiscard]] inline queue chosen_queue(queue_choice on) {
  return on.get() != nullptr
             ? queue::share(on.get())
             : make<queue>(isthmus_queue_default, static_cast<isthmus_device_t*>(nullptr));
}

}  // namespace detail

// Throws unsupported for a kind that the device has not.
[[nodiscard]] inline resource default_pool(kind of = kind::device, queue_choice on = {}) {
  return detail::pool_table::process().find(of, detail::chosen_queue(on).get());
}

}  // namespace v1
}  // namespace isthmus
