// Operations that are held back till the host has done what they wait for.

#include "backend/cuda/submit.hpp"
#include "backend/library_threads.hpp"

namespace isthmus::cuda {
namespace {

// Pre: on a thread of the library.
void wait_till_ready(wait_list after) {
  for (const auto& before : after) {
    if (auto* known = dynamic_cast<operation*>(before.get())) {
      static_cast<void>(known->wait_till_put(std::nullopt));
    } else {
      static_cast<void>(before->wait(std::nullopt));
    }
  }
}

}  // namespace

// Pre: `submitting_` is held. The first has a thread started, which serves the later ones too.
void queue::hold_back(held_operation what) {
  held_.push_back(std::move(what));
  if (held_.size() != 1) {
    return;
  }
  set_holds_back(true);
  try {
    run_on_library_thread([this, keep = ref<isthmus::queue>{this}] { put_what_is_held(); },
                          [this](const error& why) { refuse_what_is_held(why); });
  } catch (const std::bad_alloc&) {
    drop_first_held();
    throw;
  }
}

void queue::put_what_is_held() noexcept {
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

void queue::put_late(held_operation& what) const noexcept {
  wait_till_ready(what.after);
  if (auto failed = put(*what.made, what.call, what.after, what.command)) {
    what.made->refuse(std::move(failed));
  }
}

// Pre: `submitting_` is held, and there is one.
void queue::refuse_what_is_held(const error& why) noexcept {
  held_.front().made->refuse(why);
  drop_first_held();
}

// Pre: `submitting_` is held.
void queue::drop_first_held() noexcept {
  held_.pop_front();
  set_holds_back(!held_.empty());
}

}  // namespace isthmus::cuda
