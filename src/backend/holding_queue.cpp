// SPDX-License-Identifier: Apache-2.0
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

// Pre: `submitting_` is held. The first held operation starts a thread, which also serves the later
// ones.
error holding_queue::hold_back(held_operation what, held_operation& refused) {
  add_unfinished_of_ours(what.earlier);
  held_.push_back(std::move(what));
  if (held_.size() != 1) {
    return {};
  }
  set_holds_back(true);
  error failed;
  try {
    run_on_library_thread([this, keep = ref<queue>{this}] { put_what_is_held(); },
                          [&failed](error why) { failed = std::move(why); });
  } catch (const std::bad_alloc&) {
    failed = error::no_memory();
  }
  if (failed) {
    refused = drop_first_held();
  }
  return failed;
}

void holding_queue::put_what_is_held() noexcept {
  for (bool more = true; more;) {
    held_operation* next = nullptr;
    {
      const std::lock_guard hold{submitting_};
      next = &held_.front();
    }
    put_late(*next);
    held_operation done;  // releases its references outside the lock
    const std::lock_guard hold{submitting_};
    done = drop_first_held();
    more = !held_.empty();
  }
}

// A refused operation ends only after everything that it was ordered after: the next user of the
// memory and the next operation on the queue take its end for theirs.
void holding_queue::put_late(held_operation& what) const noexcept {
  for (const auto& before : what.after) {
    wait_till_ready(*before);
  }
  error failed;
  try {
    failed = what.put(what.after);
  } catch (const std::bad_alloc&) {
    failed = error::no_memory();
  }
  if (failed) {
    let_end(what.after);
    let_end(what.earlier);
    what.made->refuse(std::move(failed));
  }
}

// Pre: on a library thread.
void holding_queue::wait_till_ready(event& before) const noexcept {
  if (knows(before)) {
    static_cast<void>(static_cast<late_event&>(before).wait_till_put(std::nullopt));
  } else {
    static_cast<void>(before.wait(std::nullopt));
  }
}

// Pre: `submitting_` is held, and an operation is held back.
holding_queue::held_operation holding_queue::drop_first_held() noexcept {
  auto first = std::move(held_.front());
  held_.pop_front();
  set_holds_back(!held_.empty());
  return first;
}

}  // namespace isthmus
