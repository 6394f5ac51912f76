// SPDX-License-Identifier: Apache-2.0
// Downloads that a caller can wait for outside the buffer's lock.

#include "unified/arriving.hpp"

#include <algorithm>

#include "os/process.hpp"
#include "unified/unified_buffer.hpp"

namespace isthmus {
namespace {

// A copy of at most this size is short enough to wait for.
constexpr std::size_t k_in_one_go_bytes = std::size_t{1} << 30;

}  // namespace

Result<bool> stands_behind_work(Queue& queue, Buffer& memory) {
  std::vector<Ref<Event>> there;
  ISTHMUS_TRY(queue.unfinished(there));
  if (std::ranges::any_of(there, [](const Ref<Event>& each) { return each->pending(); })) {
    return true;
  }
  auto ended = memory.wait(os::Clock::now());
  if (!ended && ended.failure().code() != ISTHMUS_ERROR_TIMEOUT) {
    return ended.take_error();
  }
  return !ended;
}

// Whether a download would wait for more than one copy of bounded size.
Result<bool> UnifiedBuffer::would_wait(const SyncRequest& wanted) {
  if (!device_is_there_ || (host_is_there_ && !owed_host_.overlaps(wanted.range))) {
    return false;
  }
  return wanted.range.nbytes() > k_in_one_go_bytes ? Result<bool>{true}
                                                   : stands_behind_work(chosen(wanted), *device_);
}

Submitted UnifiedBuffer::arrival(const SyncRequest& wanted, BeforeArrival mode) {
  const auto held = enter();
  if (auto bad = refuse(wanted.range)) {
    return bad;
  }
  const bool is_current = flights_.empty() && owed_host_.empty() && host_is_there_;
  if (os::is_forked_child() || (is_current && !has_uncounted())) {
    return Ref<Event>{};
  }
  ISTHMUS_TRY(settle());
  auto waits = mode == BeforeArrival::fetch ? would_wait(wanted) : Result<bool>{false};
  ISTHMUS_TRY(waits);
  if (*waits) {
    auto begun = download({wanted.range, wanted.queue, Waiting::nobody});
    // The download found no memory to arrive in. A blocking call needs none.
    if (!begun && begun.failure().code() != ISTHMUS_ERROR_OUT_OF_MEMORY) {
      return begun;
    }
  }
  std::vector<Ref<Event>> coming;
  if (mode == BeforeArrival::work && device_is_there_) {
    ISTHMUS_TRY(chosen(wanted).unfinished(coming));
    auto ended = device_->pending();
    ISTHMUS_TRY(ended);
    coming.push_back(*std::move(ended));
    std::erase_if(coming, [](const Ref<Event>& each) { return !each->pending(); });
  }
  for (const auto* each : flights_.of(wanted.range, false)) {
    if (each->ended->pending()) {
      coming.push_back(each->ended);
    }
  }
  // A separate event: a caller that sees a failure through it has not received the report of that
  // failure.
  return coming.empty() ? Submitted{Ref<Event>{}} : end_of_all(coming);
}

}  // namespace isthmus
