// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/queue_fences.hpp"

#include <algorithm>
#include <new>

#include "backend/order_only.hpp"
#include "core/expects.hpp"
#include "core/lock_guard.hpp"
#include "os/process.hpp"

namespace isthmus {
namespace {

void raise_to(std::atomic<std::uint64_t>& value, std::uint64_t min) noexcept {
  auto seen = value.load(std::memory_order_relaxed);
  while (seen < min && !value.compare_exchange_weak(seen, min, std::memory_order_release)) {
  }
}

}  // namespace

// Counts the fences of all queues that one number of k_several waits for. The last one to complete
// passes that number.
class QueueFences::PassingOfSeveral final {
 public:
  PassingOfSeveral(QueueFences& fences, std::uint64_t number) noexcept
      : fences_{&fences}, number_{number} {}
  void begin() noexcept { pending_.fetch_add(1, std::memory_order_relaxed); }
  // One of the fences could not be submitted: the number passes with a later fence.
  void mark_incomplete() noexcept {
    complete_.store(false, std::memory_order_relaxed);
    raise_to(fences_->entries_[k_several].wanted, number_ + 1);
  }
  void end() noexcept {
    if (pending_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      if (complete_.load(std::memory_order_relaxed)) {
        fences_->pass(k_several, number_);
      }
      delete this;
    }
  }

 private:
  const Ref<QueueFences> fences_;
  const std::uint64_t number_;
  std::atomic<unsigned> pending_{1};  // 1 for the thread that submits the fences
  std::atomic<bool> complete_{true};
};

// Runs when a fence has completed: passes its number.
class QueueFences::Passing final : public Continuation {
 public:
  Passing(QueueFences& fences, EntryIndex index, std::uint64_t number,
          PassingOfSeveral* group) noexcept
      : fences_{&fences}, index_{index}, number_{number}, group_{group} {}
  void run(Event&) noexcept override {
    fences_->pass(index_, number_);
    if (group_ != nullptr) {
      group_->end();
    }
    delete this;
  }

 private:
  const Ref<QueueFences> fences_;
  const EntryIndex index_;
  const std::uint64_t number_;
  PassingOfSeveral* const group_;
};

void QueueFences::pass(EntryIndex index, std::uint64_t number) noexcept {
  passes_begun_.fetch_add(1, std::memory_order_acq_rel);
  raise_to(entries_[index].done, number);
  passes_ended_.fetch_add(1, std::memory_order_release);
}

QueueFences::EntryIndex QueueFences::entry_of(Queue& queue) noexcept {
  if (const auto existing = entries_.find(queue.serial()); existing != k_no_queue) {
    return existing;
  }
  // Entries of released queues become reusable only after their fences have completed, but possibly
  // no request needs these fences. Therefore every 64th new entry makes fences due: the next
  // allocation submits them, not this call, which may be a free. They are submitted here only if no
  // entry is left.
  const auto found = enter(queue);
  if (found == k_no_queue) {
    fence();
    return enter(queue);
  }
  if (found % k_fence_every == 0) {
    fence_is_due_.store(true, std::memory_order_relaxed);
  }
  return found;
}

// Whether the entry is reusable: only pools still reference its queue, and no thread cache or
// ticket depends on it. Checked in this order, because the last other owner of the queue may have
// obtained a thread cache or a ticket just before it released the queue.
bool QueueFences::is_reusable(const QueueEntry& entry) noexcept {
  return entry.queue->pool_references().are_all() &&
         entry.thread_cache_count.load(std::memory_order_acquire) == 0 &&
         entry.wanted.load(std::memory_order_acquire) <= entry.done.load(std::memory_order_acquire);
}

// Continues where the last search ended.
QueueFences::EntryIndex QueueFences::find_reusable(EntryIndex max_examined) noexcept {
  const auto used = entries_.used();
  for (auto remaining = std::min(used - (k_several + 1), max_examined); remaining != 0;
       --remaining) {
    last_examined_ = last_examined_ + 1 < used ? last_examined_ + 1 : k_several + 1;
    if (is_reusable(entries_[last_examined_])) {
      return last_examined_;
    }
  }
  return k_no_queue;
}

// A new queue reuses the entry of a released one, so that the number of entries remains close to
// that of the queues in use. Only a few entries are inspected, so that the cost does not depend on
// their number.
QueueFences::EntryIndex QueueFences::enter(Queue& queue) noexcept {
  Ref<Queue> previous_queue;  // both are released after the lock
  Ref<Event> previous_fence;
  const LockGuard hold{lock_};
  if (const auto existing = entries_.find(queue.serial()); existing != k_no_queue) {
    return existing;
  }
  constexpr EntryIndex k_max_examined = 64;
  auto found = find_reusable(k_max_examined);
  if (found == k_no_queue) {
    found = entries_.add();
  }
  if (found == k_no_queue) {
    found = find_reusable(entries_.used());
  }
  if (found != k_no_queue) {
    auto& entry = entries_[found];
    previous_queue = std::exchange(entry.queue, Ref<Queue>{&queue});
    previous_fence = std::exchange(entry.fence, nullptr);
    queue.pool_references().add();
    if (previous_queue) {
      previous_queue->pool_references().remove();
    }
    entries_.assign(found, queue.serial());
  }
  return found;
}

QueueFences::EntryIndex QueueFences::find(Queue* queue) noexcept {
  return queue == nullptr || !queue->is_in_order() ? k_no_queue : entry_of(*queue);
}

Ref<Queue> QueueFences::find(std::uint64_t serial) noexcept {
  const LockGuard hold{lock_};
  const auto existing = entries_.find(serial);
  if (existing == k_no_queue) {
    return {};
  }
  auto* const queue = entries_[existing].queue.get();
  return queue->pool_references().retain_unless_all() ? Ref<Queue>::adopt(queue) : Ref<Queue>{};
}

// `submit` raises `issued` before it calls the driver, so memory that is freed after the fence was
// submitted gets a later number.
Ticket QueueFences::next(EntryIndex index) noexcept {
  if (index == k_no_queue) {
    return {};
  }
  auto& entry = entries_[index];
  const auto number = entry.issued.load(std::memory_order_acquire) + 1;
  raise_to(entry.wanted, number);
  return {index, number};
}

Ticket QueueFences::joined(Ticket a, Ticket b) noexcept {
  if (a.entry() == b.entry()) {
    return a.number() < b.number() ? b : a;
  }
  if (a == Ticket::never() || b == Ticket::never()) {
    return Ticket::never();
  }
  if (passed(a)) {
    return passed(b) ? Ticket{} : b;
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

void QueueFences::submit(EntryIndex index, PassingOfSeveral* group) noexcept {
  auto& entry = entries_[index];
  const auto number = entry.issued.fetch_add(1, std::memory_order_acq_rel) + 1;
  if (!try_submit(index, number, group)) {
    raise_to(entry.wanted, number + 1);  // the next fence replaces this one too
    if (group != nullptr) {
      group->mark_incomplete();
    }
  }
}

// Takes the lock, since another thread may reassign the entry concurrently.
Ref<Queue> QueueFences::queue_of(EntryIndex index) noexcept {
  const LockGuard hold{lock_};
  return entries_[index].queue;
}

bool QueueFences::try_submit(EntryIndex index, std::uint64_t number,
                             PassingOfSeveral* group) noexcept try {
  const auto queue = queue_of(index);
  if (!queue || os::drivers_unavailable()) {
    return false;
  }
  auto event = queue->pending();
  if (!event && event.failure().code() == ISTHMUS_ERROR_DEVICE_LOST) {
    pass(index, number);  // nothing runs on a lost device
    return true;
  }
  auto* continuation = event ? new (std::nothrow) Passing{*this, index, number, group} : nullptr;
  if (continuation == nullptr) {
    return false;
  }
  if (group != nullptr) {
    group->begin();
  }
  record_fence(index, {*event, number});
  (*event)->on_complete(*continuation);
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

void QueueFences::record_fence(EntryIndex index, Fenced fenced) noexcept {
  auto& entry = entries_[index];
  const LockGuard hold{lock_};
  if (entry.fence_number < fenced.number) {
    std::swap(entry.fence, fenced.end);  // the previous one is released after the lock
    entry.fence_number = fenced.number;
  }
}

QueueFences::Fenced QueueFences::last_fence(EntryIndex index) noexcept {
  const auto& entry = entries_[index];
  const LockGuard hold{lock_};
  return {entry.fence, entry.fence_number};
}

QueueFences::Fenced QueueFences::covering_fence(EntryIndex index) noexcept {
  const auto wanted = entries_[index].wanted.load(std::memory_order_acquire);
  auto last = last_fence(index);
  if (!last.end || last.number < wanted) {
    submit(index, nullptr);
    last = last_fence(index);
  }
  return last.number < wanted ? Fenced{} : std::move(last);
}

// Makes `group` wait for an entry whose tickets are all covered by submitted fences.
void QueueFences::follow(EntryIndex index, PassingOfSeveral& group) noexcept {
  const auto last = covering_fence(index);
  auto* continuation =
      last.end ? new (std::nothrow) Passing{*this, index, last.number, &group} : nullptr;
  if (continuation == nullptr) {
    group.mark_incomplete();
    return;
  }
  group.begin();
  last.end->on_complete(*continuation);
}

// Whether memory waits for the queue of the entry. Other queues are not used, since their owners
// may have destroyed their streams.
bool QueueFences::is_waited_for(const QueueEntry& entry) noexcept {
  return entry.wanted.load(std::memory_order_acquire) > entry.done.load(std::memory_order_acquire);
}

void QueueFences::fence() noexcept {
  PassingOfSeveral* group = nullptr;
  auto& several = entries_[k_several];
  if (several.wanted.load(std::memory_order_acquire) >
      several.issued.load(std::memory_order_relaxed)) {
    const auto number = several.issued.fetch_add(1, std::memory_order_acq_rel) + 1;
    std::atomic_thread_fence(std::memory_order_seq_cst);  // see `joined`
    group = new (std::nothrow) PassingOfSeveral{*this, number};
    if (group == nullptr) {
      raise_to(several.wanted, number + 1);
    }
  }
  const auto used = entries_.used();
  for (EntryIndex each = k_several + 1; each < used; ++each) {
    const auto& entry = entries_[each];
    if (entry.wanted.load(std::memory_order_acquire) >
        entry.issued.load(std::memory_order_acquire)) {
      submit(each, group);
    } else if (group != nullptr && is_waited_for(entry)) {
      follow(each, *group);
    }
  }
  if (group != nullptr) {
    group->end();
  }
}

void QueueFences::fence_if_due() noexcept {
  if (fence_is_due_.load(std::memory_order_relaxed) &&
      fence_is_due_.exchange(false, std::memory_order_relaxed)) {
    fence();
  }
}

Ticket QueueFences::fence_after(Queue& queue) noexcept {
  const auto index = entry_of(queue);
  if (index != k_no_queue) {
    const auto ticket = next(index);
    submit(index, nullptr);
    return ticket;
  }
  try {
    if (queue.wait(std::nullopt)) {
      return {};
    }
  } catch (const std::bad_alloc&) {
    // As if the driver could not report the completion.
  }
  return Ticket::never();
}

Ticket QueueFences::ticket_after(Queue* queue) noexcept {
  if (queue == nullptr) {
    return {};
  }
  const auto index = find(queue);
  return index == k_no_queue ? fence_after(*queue) : next(index);
}

// Also passes the tickets of fences that have completed: their continuation may not have run yet,
// because its thread waits for a CPU, and a caller that polls would otherwise give up too early.
std::vector<Ref<Event>> QueueFences::running(EntryIndex index) {
  std::vector<Ref<Event>> found;
  const auto used = entries_.used();
  const bool all = is_waited_for(entries_[k_several]);
  const auto several_issued = entries_[k_several].issued.load(std::memory_order_acquire);
  bool all_ended = all;
  for (EntryIndex each = k_several + 1; each < used; ++each) {
    const bool matters = (all || each != index) && is_waited_for(entries_[each]);
    if (!matters) {
      continue;
    }
    auto last = covering_fence(each);
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
    pass(k_several, several_issued);
  }
  return found;
}

Result<void> QueueFences::add_dependency(Ticket ticket, Queue& queue) {
  ISTHMUS_EXPECTS(ticket != Ticket::never());
  std::vector<Ref<Event>> ends;
  const auto used = entries_.used();
  for (EntryIndex each = k_several + 1; each < used; ++each) {
    const bool matters =
        (ticket.entry() == each || ticket.entry() == k_several) && is_waited_for(entries_[each]);
    if (!matters || queue_of(each).get() == &queue) {
      continue;
    }
    if (auto last = covering_fence(each); last.end) {
      ends.push_back(std::move(last.end));
    } else if (is_waited_for(entries_[each])) {  // false if the device is lost: nothing runs there
      return Error::no_memory();
    }
  }
  if (queue.has_external_work()) {
    return queue.order_after(ends);  // external work may overtake operations held back on the host
  }
  auto fence_event = queue.fence(order_only(ends));
  ISTHMUS_TRY(fence_event);
  return {};
}

void QueueFences::drop_queues() noexcept {
  const auto used = entries_.used();
  for (EntryIndex each = k_several + 1; each < used; ++each) {
    const auto queue = std::exchange(entries_[each].queue, nullptr);
    queue->pool_references().remove();
    const auto last = std::exchange(entries_[each].fence, nullptr);
  }
}

}  // namespace isthmus
