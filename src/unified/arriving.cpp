// SPDX-License-Identifier: Apache-2.0
// Events with which a caller waits for downloads outside the buffer's lock.

#include "unified/arriving.hpp"

#include <algorithm>

#include "os/process.hpp"
#include "unified/unified_buffer.hpp"

namespace isthmus {
namespace {

// A download of at most this size is short enough to wait for under the lock.
constexpr std::size_t k_max_wait_bytes = std::size_t{1} << 30;

}  // namespace

Result<bool> has_pending_work(Queue& queue, Buffer& memory) {
  std::vector<Ref<Event>> pending;
  ISTHMUS_TRY(queue.unfinished(pending));
  if (std::ranges::any_of(pending, [](const Ref<Event>& event) { return event->pending(); })) {
    return true;
  }
  auto status = memory.wait(os::Clock::now());
  if (!status && status.failure().code() != ISTHMUS_ERROR_TIMEOUT) {
    return status.take_error();
  }
  return !status;
}

// Whether a download of the range would block for longer than one copy of at most
// `k_max_wait_bytes`.
Result<bool> UnifiedBuffer::would_wait(const SyncRequest& request) {
  if (!device_is_valid_ || (host_is_valid_ && !device_dirty_.overlaps(request.range))) {
    return false;
  }
  return request.range.nbytes() > k_max_wait_bytes ? Result<bool>{true}
                                                   : has_pending_work(queue_for(request), *device_);
}

Submitted UnifiedBuffer::arrival(const SyncRequest& request, BeforeArrival mode) {
  const auto guard = enter();
  if (auto error = validate(request.range)) {
    return error;
  }
  const bool is_current = inflight_.empty() && device_dirty_.empty() && host_is_valid_;
  if (os::is_forked_child() || (is_current && !has_uncounted())) {
    return Ref<Event>{};
  }
  ISTHMUS_TRY(complete_and_report());
  auto waits = mode == BeforeArrival::fetch ? would_wait(request) : Result<bool>{false};
  ISTHMUS_TRY(waits);
  if (*waits) {
    auto download_result = download({request.range, request.queue, Waiting::next_use});
    // OUT_OF_MEMORY is ignored: there is no memory for the block of an asynchronous download, and
    // the caller's blocking call needs none.
    if (!download_result && !is_out_of_memory(download_result)) {
      return download_result;
    }
  }
  std::vector<Ref<Event>> pending;
  if (mode == BeforeArrival::work && device_is_valid_) {
    ISTHMUS_TRY(queue_for(request).unfinished(pending));
    auto event = device_->pending();
    ISTHMUS_TRY(event);
    pending.push_back(*std::move(event));
    std::erase_if(pending, [](const Ref<Event>& unfinished) { return !unfinished->pending(); });
  }
  for (const auto* download : inflight_.overlapping(request.range, false)) {
    if (download->event->pending()) {
      pending.push_back(download->event);
    }
  }
  // A separate event, because waiting for it must not count as a report of a failed copy.
  return pending.empty() ? Submitted{Ref<Event>{}} : end_of_all(pending);
}

}  // namespace isthmus
