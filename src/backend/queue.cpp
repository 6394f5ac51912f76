// SPDX-License-Identifier: Apache-2.0
#include "backend/queue.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "backend/order_only.hpp"
#include "backend/platform.hpp"
#include "core/promised_room.hpp"
#include "core/sizes.hpp"
#include "core/undo.hpp"
#include "os/process.hpp"

namespace isthmus {
namespace {

// Far longer than a driver or the host lacks memory while other code frees some.
constexpr std::chrono::milliseconds k_follows_for{1000};

std::uint64_t next_serial() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

queue::queue(context& home, device& where, bool part)
    : ref_counted{part ? &home.home() : nullptr},
      home_{home},
      where_{where},
      serial_{next_serial()} {
  if (!part) {
    keep_ = ref<context>{&home};
  }
}

queue::~queue() = default;

std::uintptr_t queue::key() const noexcept { return address(this); }

void queue::note_pool() noexcept {
  const std::lock_guard hold{pools_lock_};
  ++pools_;
}

void queue::forget_pool() noexcept {
  const std::lock_guard hold{pools_lock_};
  --pools_;
}

bool queue::known_to_pools_alone() noexcept {
  const std::lock_guard hold{pools_lock_};
  return references() <= pools_;
}

bool queue::retain_if_known() noexcept {
  const std::lock_guard hold{pools_lock_};
  return references() > pools_ && try_retain();
}

result<void*> queue::lend() noexcept {
  void* handle = native();
  if (handle != nullptr) {
    mark_lent();
    if (waits_elsewhere_.load(std::memory_order_acquire)) [[unlikely]] {
      if (auto refused = follow_elsewhere()) {
        return refused;
      }
    }
  }
  return handle;
}

error queue::refuse() const {
  if (os::drivers_are_gone()) {
    return fail(ISTHMUS_ERROR_FORKED,
                "a queue cannot be used in a forked child (start it with spawn), nor after main "
                "has returned");
  }
  if (closed()) {
    return fail(ISTHMUS_ERROR_CLOSED, "this queue of {} was closed", where_.properties().filter);
  }
  return {};
}

// Returns the events that are still pending, as events that this driver can wait for. If the driver
// cannot wait for the host, the calling thread waits here instead. The failure of an order_only
// event is dropped.
result<std::vector<ref<event>>> queue::translate(wait_list after) {
  std::vector<ref<event>> pending;
  for (const auto& given : after) {
    const auto* const only = order_only_event::waited_by(*given);
    const auto& before = only != nullptr ? *only : given;
    if (!before->settled() && !knows(*before) && !where_.can(ISTHMUS_CAN_WAIT_FOR_HOST)) {
      static_cast<void>(before->wait(std::nullopt));
    }
    // Not queried: the driver orders what is still pending, and on a simulated device a query
    // counts as a poll, which may end the operation.
    const auto state = before->settled() ? before->poll() : ISTHMUS_PENDING;
    if (state == ISTHMUS_OK || (only != nullptr && state != ISTHMUS_PENDING)) {
      continue;
    }
    if (state != ISTHMUS_PENDING) {
      return failed_dependency(before->outcome());
    }
    if (knows(*before)) {
      auto stands_for = only != nullptr ? end_of_known(before, given) : result<ref<event>>{before};
      ISTHMUS_TRY(stands_for);
      pending.push_back(*std::move(stands_for));
      continue;
    }
    auto imported = import(*given);
    ISTHMUS_TRY(imported);
    pending.push_back(*std::move(imported));
  }
  return pending;
}

std::uint64_t queue::begin_submission() {
  return promise_room(tails_, tails_lock_, promised_, next_number_);
}

void queue::give_up_submission() noexcept {
  const std::lock_guard hold{tails_lock_};
  --promised_;
}

void queue::reserve_place() { static_cast<void>(begin_submission()); }

error queue::take_place(const ref<event>& elsewhere) noexcept {
  {
    const std::lock_guard hold{tails_lock_};
    --promised_;
    tails_.push_back({next_number_++, elsewhere, true});
    waits_elsewhere_.store(true, std::memory_order_release);
  }
  return follow_elsewhere();
}

ref<event> queue::pending_elsewhere() noexcept {
  const std::lock_guard hold{tails_lock_};
  const auto found = std::ranges::find_if(
      tails_, [](const tail& each) { return each.is_elsewhere && !each.last->settled(); });
  return found != tails_.end() ? found->last : ref<event>{};
}

error queue::fence_without_throwing() noexcept {
  try {
    auto put = fence({});
    return put ? error{} : put.take_error();
  } catch (const std::bad_alloc&) {
    return error::no_memory();
  }
}

error queue::cannot_follow(const error& refused) const noexcept {
  return fail(
      refused.code(),
      "the driver refused for {} ms to order a queue of {}, whose handle was exported, after an "
      "operation on another queue (wait for that operation before the handle is used): {}",
      k_follows_for.count(), where_.properties().filter, refused.message());
}

// Orders later work of other code on the driver's queue after the events elsewhere. Retries rather
// than waits for these events, since they may depend on one that the calling thread completes. A
// driver may refuse permanently, and then the caller gets the error. On a lost device nothing runs,
// so nothing can run too early.
error queue::follow_elsewhere() noexcept {
  const auto until = os::clock::now() + k_follows_for;
  for (;;) {
    auto refused = fence_without_throwing();
    if (!refused || refused.code() == ISTHMUS_ERROR_DEVICE_LOST || !has_others_work() || closed() ||
        os::drivers_are_gone()) {
      return {};
    }
    const auto left = pending_elsewhere();
    if (!left) {
      return {};
    }
    if (left->pending()) {
      if (os::clock::now() >= until) {
        return cannot_follow(refused);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
  }
}

std::uint64_t queue::add_from_elsewhere(std::vector<ref<event>>& after) {
  if (!waits_elsewhere_.load(std::memory_order_acquire)) [[likely]] {
    return 0;
  }
  std::vector<ref<event>> found;
  const auto below = [&] {
    const std::lock_guard hold{tails_lock_};
    for (const auto& each : tails_) {
      if (each.is_elsewhere) {
        found.push_back(each.last);
      }
    }
    return next_number_;
  }();
  for (const auto& each : found) {
    after.push_back(order_only(each));
  }
  return below;
}

// Everything remembered before this submission began precedes it in the queue's order: its end
// implies theirs. Concurrent submissions of other threads stay, and so do events elsewhere that
// this submission did not wait for. References are dropped outside the lock, one at a time: there
// is a single tail unless threads submit concurrently.
void queue::remember(ref<event> submitted, std::uint64_t began_at,
                     std::uint64_t elsewhere_below) noexcept {
  const auto lies_before = [=](const tail& earlier) {
    return earlier.number < (earlier.is_elsewhere ? elsewhere_below : began_at);
  };
  {
    const std::lock_guard hold{tails_lock_};
    if (tails_.size() == 1 && elsewhere_below == 0 && lies_before(tails_.front())) [[likely]] {
      tails_.front().number = next_number_++;
      std::swap(tails_.front().last, submitted);
      --promised_;
      return;
    }
  }
  for (bool added = false; !added;) {
    ref<event> dropped;
    const std::lock_guard hold{tails_lock_};
    const auto first = std::find_if(tails_.begin(), tails_.end(), lies_before);
    added = first == tails_.end() || std::none_of(first + 1, tails_.end(), lies_before);
    if (first == tails_.end()) {
      tails_.push_back({next_number_++, std::move(submitted)});
    } else {
      dropped = std::move(first->last);
      if (added) {
        *first = {next_number_++, std::move(submitted)};
      } else {
        tails_.erase(first);
      }
    }
    promised_ -= added ? 1 : 0;
    if (added && elsewhere_below != 0) [[unlikely]] {
      waits_elsewhere_.store(std::ranges::any_of(tails_, &tail::is_elsewhere),
                             std::memory_order_release);
    }
  }
}

template <class Lock, class Submit>
result<ref<event>> queue::submit(wait_list after, Submit&& call) {
  if (auto refused = refuse()) {
    return refused;
  }
  std::vector<ref<event>> elsewhere;
  const auto elsewhere_below = add_from_elsewhere(elsewhere);
  if (elsewhere_below != 0) {
    elsewhere.insert(elsewhere.end(), after.begin(), after.end());
    after = elsewhere;
  }
  std::vector<ref<event>> pending;
  if (!after.empty()) {
    auto translated = translate(after);
    if (!translated) {
      return translated.take_error();
    }
    pending = *std::move(translated);
  }
  const Lock together{handing_over_};
  const auto began_at = begin_submission();
  undo given_up{[&] { give_up_submission(); }};
  result<ref<event>> submitted = call(wait_list{pending});
  if (submitted) {
    given_up.dismiss();
    remember(*submitted, began_at, elsewhere_below);
  }
  return submitted;
}

result<ref<event>> queue::copy(void* destination, const void* source, std::size_t nbytes,
                               wait_list after) {
  return submit(after,
                [&](wait_list known) { return do_copy(destination, source, nbytes, known); });
}

result<ref<event>> queue::copy_2d(const copy_2d_shape& shape, wait_list after) {
  return submit(after, [&](wait_list known) { return do_copy_2d(shape, known); });
}

result<ref<event>> queue::copy_ranges(const ranged_copy& what, wait_list after) {
  return submit(after, [&](wait_list known) { return do_copy_ranges(what, known); });
}

result<ref<event>> queue::copy_strided(const strided_copy& what, wait_list after) {
  return submit(after, [&](wait_list known) { return do_copy_strided(what, known); });
}

result<ref<event>> queue::do_copy_strided(const strided_copy& what, wait_list after) {
  return do_copy_ranges({what.destination, what.source, list_runs(what)}, after);
}

result<ref<event>> queue::fill(void* destination, const fill_pattern& pattern, std::size_t nbytes,
                               wait_list after) {
  return submit(after,
                [&](wait_list known) { return do_fill(destination, pattern, nbytes, known); });
}

result<ref<event>> queue::prefetch(const void* pointer, std::size_t nbytes, bool to_host,
                                   wait_list after) {
  return submit(after,
                [&](wait_list known) { return do_prefetch(pointer, nbytes, to_host, known); });
}

result<ref<event>> queue::advise(const void* pointer, std::size_t nbytes, std::uint32_t advice,
                                 wait_list after) {
  return submit(after, [&](wait_list known) { return do_advise(pointer, nbytes, advice, known); });
}

result<ref<event>> queue::fence(wait_list after) {
  return submit(after, [&](wait_list known) { return do_fence(known); });
}

result<ref<event>> queue::mark() {
  return submit({}, [&](wait_list) { return do_mark(); });
}

result<void> queue::stand_behind(wait_list before) {
  if (before.empty()) {
    return {};
  }
  auto reached = fence(order_only(before));
  ISTHMUS_TRY(reached);
  const bool is_behind =
      (*reached)->is_put() && ((*reached)->succeeded() || !(*reached)->settled());
  if (!is_behind) {  // held back, or refused on submission to the driver
    return let_end_interruptibly(before);
  }
  return {};
}

// If the function is refused, at once or for lack of a thread, it is destroyed after the lock was
// released.
result<ref<event>> queue::run(std::unique_ptr<host_function> function, wait_list after) {
  function_start start;
  auto submitted = submit<std::unique_lock<std::shared_mutex>>(
      after, [&](wait_list known) { return do_run(function, known, start); });
  if (start.turn != nullptr) {
    start.reached->on_complete(*start.turn);
  }
  return submitted;
}

result<ref<event>> queue::do_prefetch(const void*, std::size_t, bool, wait_list) {
  return fail(ISTHMUS_ERROR_UNSUPPORTED, "{} cannot prefetch", where_.properties().filter);
}

result<ref<event>> queue::do_advise(const void*, std::size_t, std::uint32_t, wait_list) {
  return fail(ISTHMUS_ERROR_UNSUPPORTED, "{} does not support memory advice",
              where_.properties().filter);
}

result<ref<event>> queue::import(event&) {
  return fail(ISTHMUS_ERROR_INTERNAL, "{} reports that it can wait for the host, but cannot",
              where_.properties().filter);
}

}  // namespace isthmus
