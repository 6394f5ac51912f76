// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>

#include "backend/platform.hpp"
#include "core/expects.hpp"
#include "core/lock_guard.hpp"
#include "core/never_destroyed.hpp"
#include "core/sizes.hpp"
#include "core/undo.hpp"
#include "memory/records/pins.hpp"
#include "os/process.hpp"

namespace isthmus {

namespace {

std::uintptr_t end_of(const HostRange& range) noexcept {
  return address(range.start) + range.nbytes;
}

}  // namespace

std::uintptr_t PinnedRange::end() const noexcept { return end_of(bytes_); }

// Runs on the thread of the deferred releases (deferred_release.hpp), after the last copy has
// ended. No pin contains the range.
void PinnedRange::release_now() noexcept {
  const auto self = std::move(self_);
  process_pins().unregister(self);
}

template <class Visit>
void PinTable::visit(const Platform& platform, std::uintptr_t begin, std::uintptr_t end,
                     Visit&& visitor) {
  auto next = ranges_.upper_bound({&platform, begin});
  if (next != ranges_.begin() && std::prev(next)->first.first == &platform &&
      std::prev(next)->second->end() > begin) {
    --next;
  }
  for (; next != ranges_.end() && next->first.first == &platform && next->first.second < end;
       ++next) {
    visitor(next->second);
  }
}

PinnedRanges PinTable::wait_until_stable(const Platform& platform, const HostRange& range) {
  for (;;) {
    PinnedRanges found;
    bool all_stable = true;
    visit(platform, address(range.start), end_of(range),
          [&](const std::shared_ptr<PinnedRange>& each) {
            found.push_back(each);
            all_stable = all_stable && each->state_ != PinnedRange::State::changing;
          });
    if (all_stable) {
      return found;
    }
    changed_.wait(lock_);
  }
}

PinnedRanges PinTable::add_gaps(Device& device, const HostRange& range,
                                const PinnedRanges& existing,
                                const std::shared_ptr<const Owner>& owner) {
  PinnedRanges added;
  Undo undo{[&] {
    lock_.assert_held();
    for (const auto& each : added) {
      ranges_.erase({&device.platform(), address(each->bytes_.start)});
    }
  }};
  auto* at = range.start;
  const auto add_until = [&](std::byte* end) {
    lock_.assert_held();
    if (at < end) {
      const HostRange gap{at, static_cast<std::size_t>(end - at), range.read_only};
      added.reserve(added.size() + 1);
      auto pinned = std::make_shared<PinnedRange>(device, gap, owner);
      ranges_.emplace(Key{&device.platform(), address(at)}, pinned);
      added.push_back(std::move(pinned));
    }
  };
  for (const auto& each : existing) {
    add_until(each->bytes_.start);
    at = each->bytes_.start + each->bytes_.nbytes;
  }
  add_until(range.start + range.nbytes);
  undo.dismiss();
  count_.fetch_add(added.size(), std::memory_order_release);
  return added;
}

// Stops at the first failure: the ranges after it are not registered.
Error PinTable::register_all(const PinnedRanges& added) noexcept {
  Error failure;
  for (const auto& each : added) {
    if (failure) {
      break;
    }
    auto registered = each->device_->register_host(each->bytes_);
    const LockGuard hold{lock_};
    if (registered) {
      each->is_own_registration_ = *registered;
      each->state_ = PinnedRange::State::registered;
    } else {
      failure = registered.take_error();
    }
  }
  const LockGuard hold{lock_};
  for (const auto& each : added) {
    if (each->state_ == PinnedRange::State::changing) {
      ranges_.erase({&each->device_->platform(), address(each->bytes_.start)});
      each->state_ = PinnedRange::State::unregistered;
      count_.fetch_sub(1, std::memory_order_release);
    }
  }
  changed_.notify_all();
  return failure;
}

Result<PinnedRanges> PinTable::pin(Device& device, const HostRange& range,
                                   const std::shared_ptr<const Owner>& owner) {
  PinnedRanges all;
  PinnedRanges added;
  {
    const LockGuard hold{lock_};
    all = wait_until_stable(device.platform(), range);
    all.reserve(2 * all.size() + 1);  // nothing may throw once ranges were added
    added = add_gaps(device, range, all, owner);
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

void PinTable::await_uses(PinnedRange& range) noexcept {
  ++range.waiting_;
  while (range.pins_ == 0 && range.state_ != PinnedRange::State::unregistered && !range.is_free()) {
    changed_.wait(lock_);
  }
  --range.waiting_;
}

void PinTable::unpin(const PinnedRanges& ranges, bool waits) noexcept {
  {
    const LockGuard hold{lock_};
    for (const auto& each : ranges) {
      --each->pins_;
    }
  }
  for (const auto& each : ranges) {
    {
      const LockGuard hold{lock_};
      if (waits) {
        await_uses(*each);
      }
      if (!each->is_free()) {
        continue;
      }
      each->state_ = PinnedRange::State::changing;
    }
    unregister(each);
  }
}

// This thread set the state to `changing`, so it may read the range without the lock.
void PinTable::unregister(const std::shared_ptr<PinnedRange>& range) noexcept {
  ISTHMUS_EXPECTS(range->state_ == PinnedRange::State::changing, range->state_);
  if (range->is_own_registration_ && !os::drivers_unavailable()) {
    range->device_->unregister_host(range->bytes_.start);
  }
  const LockGuard hold{lock_};
  ranges_.erase({&range->device_->platform(), address(range->bytes_.start)});
  range->state_ = PinnedRange::State::unregistered;
  count_.fetch_sub(1, std::memory_order_release);
  changed_.notify_all();
}

Result<void> PinTable::wait(const PinnedRanges& ranges, const os::Deadline& until) {
  const LockGuard hold{lock_};
  const auto any_in_use = [&] {
    return std::any_of(ranges.begin(), ranges.end(),
                       [](const auto& each) { return each->uses_ != 0; });
  };
  while (any_in_use() && changed_.wait_until(lock_, until)) {
  }
  if (any_in_use()) {
    return fail(ISTHMUS_ERROR_TIMEOUT,
                "the timeout expired before copies of the pinned memory completed; they continue: "
                "wait again, or with a longer timeout");
  }
  return {};
}

PinnedRanges PinTable::hold(const Platform& platform, const std::byte* start, std::size_t nbytes) {
  const LockGuard hold{lock_};
  auto found = wait_until_stable(platform, {const_cast<std::byte*>(start), nbytes, false});
  for (const auto& each : found) {
    ++each->uses_;
  }
  return found;
}

// May run in a driver's callback, which must not call the driver: the thread of the deferred
// releases unregisters the ranges.
void PinTable::release_now(const PinnedRanges& held) noexcept {
  for (const auto& each : held) {
    const LockGuard hold{lock_};
    --each->uses_;
    if (each->is_free() && each->waiting_ == 0) {
      each->state_ = PinnedRange::State::changing;
      each->self_ = each;
      defer_release(*each);
    }
  }
  changed_.notify_all();
}

bool PinTable::has(const Platform& platform, const void* pointer) {
  bool found = false;
  const LockGuard hold{lock_};
  visit(platform, address(pointer), address(pointer) + 1, [&](const auto&) { found = true; });
  return found;
}

PinTable& process_pins() noexcept {
  static NeverDestroyed<PinTable> only;
  return *only;
}

}  // namespace isthmus
