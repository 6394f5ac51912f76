// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>

#include "backend/platform.hpp"
#include "core/never_destroyed.hpp"
#include "core/sizes.hpp"
#include "core/undo.hpp"
#include "memory/pins.hpp"
#include "os/process.hpp"

namespace isthmus {

namespace {

std::uintptr_t end_of(const host_range& what) noexcept { return address(what.start) + what.nbytes; }

}  // namespace

std::uintptr_t pinned_range::end() const noexcept { return end_of(bytes_); }

// Runs on the thread of the deferred releases (reaper.hpp), after the last copy has ended. No pin
// contains the range.
void pinned_range::let_go() noexcept {
  const auto self = std::move(self_);
  process_pins().unregister(self);
}

template <class Visit>
void pin_table::visit(const platform& by, std::uintptr_t begin, std::uintptr_t end, Visit&& each) {
  auto next = ranges_.upper_bound({&by, begin});
  if (next != ranges_.begin() && std::prev(next)->first.first == &by &&
      std::prev(next)->second->end() > begin) {
    --next;
  }
  for (; next != ranges_.end() && next->first.first == &by && next->first.second < end; ++next) {
    each(next->second);
  }
}

pinned_ranges pin_table::settled(lock& held, const platform& by, const host_range& what) {
  for (;;) {
    pinned_ranges found;
    bool all_settled = true;
    visit(by, address(what.start), end_of(what), [&](const std::shared_ptr<pinned_range>& each) {
      found.push_back(each);
      all_settled = all_settled && each->state_ != pinned_range::state::changing;
    });
    if (all_settled) {
      return found;
    }
    changed_.wait(held);
  }
}

// Pre: the lock is held; `known` are the ranges in `what`, in order.
pinned_ranges pin_table::add_gaps(device& where, const host_range& what, const pinned_ranges& known,
                                  const std::shared_ptr<const owner>& keep) {
  pinned_ranges added;
  undo taken_out{[&] {
    for (const auto& each : added) {
      ranges_.erase({&where.home(), address(each->bytes_.start)});
    }
  }};
  auto* at = what.start;
  const auto add_till = [&](std::byte* end) {
    if (at < end) {
      const host_range gap{at, static_cast<std::size_t>(end - at), what.read_only};
      added.reserve(added.size() + 1);
      auto made = std::make_shared<pinned_range>(where, gap, keep);
      ranges_.emplace(key{&where.home(), address(at)}, made);
      added.push_back(std::move(made));
    }
  };
  for (const auto& each : known) {
    add_till(each->bytes_.start);
    at = each->bytes_.start + each->bytes_.nbytes;
  }
  add_till(what.start + what.nbytes);
  taken_out.dismiss();
  count_.fetch_add(added.size(), std::memory_order_release);
  return added;
}

// Stops at the first failure: the ranges after it are not registered.
error pin_table::register_all(const pinned_ranges& added) noexcept {
  error failure;
  for (const auto& each : added) {
    if (failure) {
      break;
    }
    auto registered = each->where_->register_host(each->bytes_);
    const std::lock_guard hold{lock_};
    if (registered) {
      each->is_ours_ = *registered;
      each->state_ = pinned_range::state::here;
    } else {
      failure = registered.take_error();
    }
  }
  const std::lock_guard hold{lock_};
  for (const auto& each : added) {
    if (each->state_ == pinned_range::state::changing) {
      ranges_.erase({&each->where_->home(), address(each->bytes_.start)});
      each->state_ = pinned_range::state::gone;
      count_.fetch_sub(1, std::memory_order_release);
    }
  }
  changed_.notify_all();
  return failure;
}

result<pinned_ranges> pin_table::pin(device& where, const host_range& what,
                                     const std::shared_ptr<const owner>& keep) {
  pinned_ranges all;
  pinned_ranges added;
  {
    lock held{lock_};
    all = settled(held, where.home(), what);
    all.reserve(2 * all.size() + 1);  // nothing may throw once ranges were added
    added = add_gaps(where, what, all, keep);
    all.insert(all.end(), added.begin(), added.end());
    for (const auto& each : all) {
      ++each->pins_;
    }
  }
  if (auto failure = register_all(added)) {
    unpin(all, true);
    return failure;
  }
  return all;
}

void pin_table::await_uses(lock& held, pinned_range& of) noexcept {
  ++of.waiting_;
  changed_.wait(held, [&] {
    return of.pins_ != 0 || of.state_ == pinned_range::state::gone || of.is_free();
  });
  --of.waiting_;
}

void pin_table::unpin(const pinned_ranges& ranges, bool wait) noexcept {
  {
    const std::lock_guard hold{lock_};
    for (const auto& each : ranges) {
      --each->pins_;
    }
  }
  for (const auto& each : ranges) {
    {
      lock held{lock_};
      if (wait) {
        await_uses(held, *each);
      }
      if (!each->is_free()) {
        continue;
      }
      each->state_ = pinned_range::state::changing;
    }
    unregister(each);
  }
}

// Pre: this thread set its state to `changing`.
void pin_table::unregister(const std::shared_ptr<pinned_range>& gone) noexcept {
  if (gone->is_ours_ && !os::drivers_are_gone()) {
    gone->where_->unregister_host(gone->bytes_.start);
  }
  const std::lock_guard hold{lock_};
  ranges_.erase({&gone->where_->home(), address(gone->bytes_.start)});
  gone->state_ = pinned_range::state::gone;
  count_.fetch_sub(1, std::memory_order_release);
  changed_.notify_all();
}

result<void> pin_table::wait(const pinned_ranges& ranges, const os::deadline& until) {
  lock held{lock_};
  const auto unused = [&] {
    return std::all_of(ranges.begin(), ranges.end(),
                       [](const auto& each) { return each->uses_ == 0; });
  };
  if (!until) {
    changed_.wait(held, unused);
  } else if (!changed_.wait_until(held, *until, unused)) {
    return fail(ISTHMUS_ERROR_TIMEOUT,
                "the timeout expired before copies of the pinned memory completed; they continue: "
                "wait again, or with a longer timeout");
  }
  return {};
}

pinned_ranges pin_table::hold(const platform& by, const std::byte* start, std::size_t nbytes) {
  lock held{lock_};
  auto found = settled(held, by, {const_cast<std::byte*>(start), nbytes, false});
  for (const auto& each : found) {
    ++each->uses_;
  }
  return found;
}

// May run in a driver's callback, which must not call the driver: the thread of the deferred
// releases unregisters the ranges.
void pin_table::let_go(const pinned_ranges& held) noexcept {
  for (const auto& each : held) {
    const std::lock_guard hold{lock_};
    --each->uses_;
    if (each->is_free() && each->waiting_ == 0) {
      each->state_ = pinned_range::state::changing;
      each->self_ = each;
      retire_later(*each);
    }
  }
  changed_.notify_all();
}

bool pin_table::has(const platform& by, const void* pointer) {
  bool found = false;
  const std::lock_guard hold{lock_};
  visit(by, address(pointer), address(pointer) + 1, [&](const auto&) { found = true; });
  return found;
}

pin_table& process_pins() noexcept {
  static never_destroyed<pin_table> only;
  return *only;
}

}  // namespace isthmus
