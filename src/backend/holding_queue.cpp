#include "backend/holding_queue.hpp"

#include "backend/library_threads.hpp"

namespace isthmus {

error failed_dependency_in(wait_list after) {
  for (const auto& before : after) {
    if (before->settled() && !before->succeeded()) {
      return failed_dependency(before->outcome());
    }
  }
  return {};
}

// Pre: `submitting_` is held. The first has a thread started, which serves the later ones too.
void holding_queue::hold_back(held_operation what) {
  held_.push_back(std::move(what));
  if (held_.size() != 1) {
    return;
  }
  set_holds_back(true);
  try {
    run_on_library_thread([this, keep = ref<queue>{this}] { put_what_is_held(); },
                          [this](const error& why) { refuse_what_is_held(why); });
  } catch (const std::bad_alloc&) {
    drop_first_held();
    throw;
  }
}

void holding_queue::put_what_is_held() noexcept {
  for (bool more = true; more;) {
    held_operation* next = nullptr;
    {
      const std::lock_guard hold{submitting_};
      next = &held_.front();
    }
    put_late(*next);
    held_operation done;  // what it refers to goes outside the lock
    const std::lock_guard hold{submitting_};
    std::swap(done, *next);
    drop_first_held();
    more = !held_.empty();
  }
}

void holding_queue::put_late(held_operation& what) const noexcept {
  for (const auto& before : what.after) {
    wait_till_ready(*before);
  }
  try {
    if (auto failed = what.put(what.after)) {
      what.made->refuse(std::move(failed));
    }
  } catch (const std::bad_alloc&) {
    what.made->refuse(error::no_memory());
  }
}

// Pre: on a thread of the library.
void holding_queue::wait_till_ready(event& before) const noexcept {
  if (knows(before)) {
    static_cast<void>(static_cast<late_event&>(before).wait_till_put(std::nullopt));
  } else {
    static_cast<void>(before.wait(std::nullopt));
  }
}

// Pre: `submitting_` is held, and there is one.
void holding_queue::refuse_what_is_held(const error& why) noexcept {
  held_.front().made->refuse(why);
  drop_first_held();
}

// Pre: `submitting_` is held.
void holding_queue::drop_first_held() noexcept {
  held_.pop_front();
  set_holds_back(!held_.empty());
}

}  // namespace isthmus
