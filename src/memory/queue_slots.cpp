// SPDX-License-Identifier: Apache-2.0
#include "memory/queue_slots.hpp"

#include <algorithm>
#include <mutex>
#include <new>

#include "backend/order_only.hpp"
#include "os/process.hpp"

namespace isthmus {
namespace {

void raise_to(std::atomic<std::uint64_t>& value, std::uint64_t least) noexcept {
  auto seen = value.load(std::memory_order_relaxed);
  while (seen < least && !value.compare_exchange_weak(seen, least, std::memory_order_release)) {
  }
}

}  // namespace

// Counts the fences of all queues that one number of k_several waits for. The last one to complete
// passes that number.
class queue_slots::passing_of_several final {
 public:
  passing_of_several(queue_slots& of, std::uint64_t number) noexcept : of_{&of}, number_{number} {}
  void begin() noexcept { left_.fetch_add(1, std::memory_order_relaxed); }
  // One of the fences could not be submitted: the number passes with a later fence.
  void give_up() noexcept {
    complete_.store(false, std::memory_order_relaxed);
    raise_to(of_->entries_[k_several].wanted, number_ + 1);
  }
  void end() noexcept {
    if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      if (complete_.load(std::memory_order_relaxed)) {
        of_->pass(k_several, number_);
      }
      delete this;
    }
  }

 private:
  const ref<queue_slots> of_;
  const std::uint64_t number_;
  std::atomic<unsigned> left_{1};  // 1 for the thread that submits the fences
  std::atomic<bool> complete_{true};
};

// Runs when a fence has completed: passes its number.
class queue_slots::passing final : public continuation {
 public:
  passing(queue_slots& of, slot which, std::uint64_t number, passing_of_several* also) noexcept
      : of_{&of}, which_{which}, number_{number}, also_{also} {}
  void run(event&) noexcept override {
    of_->pass(which_, number_);
    if (also_ != nullptr) {
      also_->end();
    }
    delete this;
  }

 private:
  const ref<queue_slots> of_;
  const slot which_;
  const std::uint64_t number_;
  passing_of_several* const also_;
};

void queue_slots::pass(slot of, std::uint64_t number) noexcept {
  passes_begun_.fetch_add(1, std::memory_order_acq_rel);
  raise_to(entries_[of].done, number);
  passes_ended_.fetch_add(1, std::memory_order_release);
}

queue_slots::slot queue_slots::entry_of(queue& on) noexcept {
  if (const auto known = entries_.find(on.serial()); known != k_quiet) {
    return known;
  }
  // Entries of released queues become reusable only after their fences, which possibly no request
  // needs. Therefore every 64th new entry makes fences due: the next allocation submits them, not
  // this call, which may be a free. They are submitted here only if no entry is left.
  const auto found = enter(on);
  if (found == k_quiet) {
    fence();
    return enter(on);
  }
  if (found % k_fence_every == 0) {
    fence_is_due_.store(true, std::memory_order_relaxed);
  }
  return found;
}

// Whether the entry is reusable: only pools still reference its queue, and no thread cache or
// ticket depends on it. Checked in this order, because the last other owner of the queue may have
// got a thread cache or a ticket just before it released the queue.
bool queue_slots::is_over(const queue_slot& in) noexcept {
  return in.on->known_to_pools_alone() && in.lanes.load(std::memory_order_acquire) == 0 &&
         in.wanted.load(std::memory_order_acquire) <= in.done.load(std::memory_order_acquire);
}

// Continues where the last search ended. Pre: the lock is held.
queue_slots::slot queue_slots::find_over(slot most_looks) noexcept {
  const auto used = entries_.used();
  for (auto left = std::min(used - (k_several + 1), most_looks); left != 0; --left) {
    oldest_ = oldest_ + 1 < used ? oldest_ + 1 : k_several + 1;
    if (is_over(entries_[oldest_])) {
      return oldest_;
    }
  }
  return k_quiet;
}

// A new queue reuses the entry of a released one, so that the number of entries stays close to that
// of the queues in use. Only a few entries are inspected, so that the cost does not depend on their
// number.
queue_slots::slot queue_slots::enter(queue& on) noexcept {
  ref<queue> gone;  // both are released after the lock
  ref<event> gone_fence;
  const std::lock_guard hold{lock_};
  if (const auto known = entries_.find(on.serial()); known != k_quiet) {
    return known;
  }
  constexpr slot k_few = 64;
  auto found = find_over(k_few);
  if (found == k_quiet) {
    found = entries_.add();
  }
  if (found == k_quiet) {
    found = find_over(entries_.used());
  }
  if (found != k_quiet) {
    auto& in = entries_[found];
    gone = std::exchange(in.on, ref<queue>{&on});
    gone_fence = std::exchange(in.fence, nullptr);
    on.note_pool();
    if (gone) {
      gone->forget_pool();
    }
    entries_.assign(found, on.serial());
  }
  return found;
}

queue_slots::slot queue_slots::find(queue* on) noexcept {
  return on == nullptr || !on->in_one_order() ? k_quiet : entry_of(*on);
}

ref<queue> queue_slots::find(std::uint64_t serial) noexcept {
  const std::lock_guard hold{lock_};
  const auto known = entries_.find(serial);
  if (known == k_quiet) {
    return {};
  }
  auto* const on = entries_[known].on.get();
  return on->retain_if_known() ? ref<queue>::adopt(on) : ref<queue>{};
}

// `submit` raises `issued` before it calls the driver, so memory that is freed after the fence was
// submitted gets a later number.
ticket queue_slots::next(slot of) noexcept {
  if (of == k_quiet) {
    return {};
  }
  auto& in = entries_[of];
  const auto number = in.issued.load(std::memory_order_acquire) + 1;
  raise_to(in.wanted, number);
  return {of, number};
}

ticket queue_slots::joined(ticket a, ticket b) noexcept {
  if (a.slot() == b.slot()) {
    return a.number() < b.number() ? b : a;
  }
  if (a == ticket::never() || b == ticket::never()) {
    return ticket::never();
  }
  if (passed(a)) {
    return passed(b) ? ticket{} : b;
  }
  if (passed(b)) {
    return a;
  }
  // Pairs with the fence in `fence`. Here the `wanted` numbers of a and b were raised before
  // `issued` of k_several is read; there `issued` of k_several is raised before `wanted` is read.
  // So one of the two threads sees the other's write. Otherwise the new ticket could pass with
  // fences that do not cover a and b.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return next(k_several);
}

void queue_slots::submit(slot of, passing_of_several* also) noexcept {
  auto& in = entries_[of];
  const auto number = in.issued.fetch_add(1, std::memory_order_acq_rel) + 1;
  if (!try_submit(of, number, also)) {
    raise_to(in.wanted, number + 1);  // the next fence replaces this one too
    if (also != nullptr) {
      also->give_up();
    }
  }
}

// Under the lock, since another thread may reassign the entry at any moment, or be doing so.
ref<queue> queue_slots::queue_of(slot of) noexcept {
  const std::lock_guard hold{lock_};
  return entries_[of].on;
}

bool queue_slots::try_submit(slot of, std::uint64_t number, passing_of_several* also) noexcept try {
  const auto on = queue_of(of);
  if (!on || os::drivers_are_gone()) {
    return false;
  }
  auto ended = on->pending();
  if (!ended && ended.failure().code() == ISTHMUS_ERROR_DEVICE_LOST) {
    pass(of, number);  // nothing runs on a lost device
    return true;
  }
  auto* told = ended ? new (std::nothrow) passing{*this, of, number, also} : nullptr;
  if (told == nullptr) {
    return false;
  }
  if (also != nullptr) {
    also->begin();
  }
  note_fence(of, {*ended, number});
  (*ended)->on_complete(*told);
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

void queue_slots::note_fence(slot of, fenced made) noexcept {
  auto& in = entries_[of];
  const std::lock_guard hold{lock_};
  if (in.fence_number < made.number) {
    std::swap(in.fence, made.end);  // the previous one is released after the lock
    in.fence_number = made.number;
  }
}

queue_slots::fenced queue_slots::last_fence(slot of) noexcept {
  const auto& in = entries_[of];
  const std::lock_guard hold{lock_};
  return {in.fence, in.fence_number};
}

queue_slots::fenced queue_slots::covering(slot of) noexcept {
  const auto wanted = entries_[of].wanted.load(std::memory_order_acquire);
  auto last = last_fence(of);
  if (!last.end || last.number < wanted) {
    submit(of, nullptr);
    last = last_fence(of);
  }
  return last.number < wanted ? fenced{} : std::move(last);
}

// Makes `also` wait for an entry whose tickets are all covered by submitted fences.
void queue_slots::follow(slot of, passing_of_several& also) noexcept {
  const auto last = covering(of);
  auto* told = last.end ? new (std::nothrow) passing{*this, of, last.number, &also} : nullptr;
  if (told == nullptr) {
    also.give_up();
    return;
  }
  also.begin();
  last.end->on_complete(*told);
}

// A queue that no memory waits for is not used: its owner may have destroyed its stream.
bool queue_slots::is_waited_for(const queue_slot& in) noexcept {
  return in.wanted.load(std::memory_order_acquire) > in.done.load(std::memory_order_acquire);
}

void queue_slots::fence() noexcept {
  passing_of_several* also = nullptr;
  auto& several = entries_[k_several];
  if (several.wanted.load(std::memory_order_acquire) >
      several.issued.load(std::memory_order_relaxed)) {
    const auto number = several.issued.fetch_add(1, std::memory_order_acq_rel) + 1;
    std::atomic_thread_fence(std::memory_order_seq_cst);  // see `joined`
    also = new (std::nothrow) passing_of_several{*this, number};
    if (also == nullptr) {
      raise_to(several.wanted, number + 1);
    }
  }
  const auto used = entries_.used();
  for (slot each = k_several + 1; each < used; ++each) {
    const auto& in = entries_[each];
    if (in.wanted.load(std::memory_order_acquire) > in.issued.load(std::memory_order_acquire)) {
      submit(each, also);
    } else if (also != nullptr && is_waited_for(in)) {
      follow(each, *also);
    }
  }
  if (also != nullptr) {
    also->end();
  }
}

void queue_slots::fence_if_due() noexcept {
  if (fence_is_due_.load(std::memory_order_relaxed) &&
      fence_is_due_.exchange(false, std::memory_order_relaxed)) {
    fence();
  }
}

ticket queue_slots::fence_behind(queue& on) noexcept {
  const auto of = entry_of(on);
  if (of != k_quiet) {
    const auto made = next(of);
    submit(of, nullptr);
    return made;
  }
  try {
    if (on.wait(std::nullopt)) {
      return {};
    }
  } catch (const std::bad_alloc&) {
    // As if the driver could not report the completion.
  }
  return ticket::never();
}

ticket queue_slots::behind(queue* on) noexcept {
  if (on == nullptr) {
    return {};
  }
  const auto of = find(on);
  return of == k_quiet ? fence_behind(*on) : next(of);
}

// Also passes the tickets of fences that have completed: their continuation may not have run yet,
// because its thread waits for a CPU, and a caller that polls would give up before it does.
std::vector<ref<event>> queue_slots::running(slot whom) {
  std::vector<ref<event>> found;
  const auto used = entries_.used();
  const bool all = is_waited_for(entries_[k_several]);
  const auto of_several = entries_[k_several].issued.load(std::memory_order_acquire);
  bool all_ended = all;
  for (slot each = k_several + 1; each < used; ++each) {
    const bool matters = (all || each != whom) && is_waited_for(entries_[each]);
    if (!matters) {
      continue;
    }
    auto last = covering(each);
    const bool has_ended = last.end && !last.end->pending();
    all_ended = all_ended && (has_ended || !is_waited_for(entries_[each]));
    if (has_ended) {
      pass(each, last.number);
    }
    if (last.end) {
      found.push_back(std::move(last.end));
    }
  }
  if (all_ended) {
    pass(k_several, of_several);
  }
  return found;
}

result<void> queue_slots::wait_behind(ticket of, queue& on) {
  std::vector<ref<event>> ends;
  const auto used = entries_.used();
  for (slot each = k_several + 1; each < used; ++each) {
    const bool matters =
        (of.slot() == each || of.slot() == k_several) && is_waited_for(entries_[each]);
    if (!matters || queue_of(each).get() == &on) {
      continue;
    }
    if (auto last = covering(each); last.end) {
      ends.push_back(std::move(last.end));
    } else if (is_waited_for(entries_[each])) {  // false if the device is lost: nothing runs there
      return error::no_memory();
    }
  }
  if (on.has_others_work()) {
    return on.stand_behind(ends);  // external work may overtake operations held back on the host
  }
  auto reached = on.fence(order_only(ends));
  ISTHMUS_TRY(reached);
  return {};
}

void queue_slots::forget_queues() noexcept {
  const auto used = entries_.used();
  for (slot each = k_several + 1; each < used; ++each) {
    const auto gone = std::exchange(entries_[each].on, nullptr);
    gone->forget_pool();
    const auto last = std::exchange(entries_[each].fence, nullptr);
  }
}

}  // namespace isthmus
