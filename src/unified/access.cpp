// SPDX-License-Identifier: Apache-2.0
// Access to the two copies: views, pointers for reading, and writes of exact ranges.

#include <algorithm>

#include "core/sizes.hpp"
#include "core/undo.hpp"
#include "os/process.hpp"
#include "unified/unified_buffer.hpp"

namespace isthmus {

Result<const std::byte*> UnifiedBuffer::read_host(const ByteRange& range) {
  const auto held = enter();
  auto read = updated_host(range);
  has_read_pointers_ = has_read_pointers_ || read;
  return read;
}

// Downloads the range if necessary. If nothing is dirty or in flight this costs only a few loads.
Result<const std::byte*> UnifiedBuffer::updated_host(const ByteRange& range) {
  if (auto error = validate(range)) {
    return error;
  }
  if (!host_is_valid_ || !device_dirty_.empty() || !inflight_.empty() || !failed_.empty() ||
      has_uncounted()) {
    ISTHMUS_TRY(download({range, nullptr, Waiting::this_call}));
  }
  return host_->view() + range.begin;
}

Result<std::byte*> UnifiedBuffer::begin_host_view(const ByteRange& range) {
  const auto held = enter();
  auto read = updated_host(range);
  ISTHMUS_TRY(read);
  host_->expect_writers();
  views_.fetch_add(1, std::memory_order_acq_rel);
  return const_cast<std::byte*>(*read);
}

// Sets `has_unscanned_writes_` before it decrements `views_`, so that a scan that no longer sees
// the view sees the flag.
void UnifiedBuffer::end_host_view() noexcept {
  has_unscanned_writes_.store(true, std::memory_order_seq_cst);
  if (views_.fetch_sub(1, std::memory_order_seq_cst) == 1 &&
      freed_.load(std::memory_order_seq_cst)) {
    free();
  }
}

Result<std::byte*> UnifiedBuffer::begin_host_write(const ByteRange& range, bool keep_contents) {
  const auto held = enter();
  if (auto error = validate(range)) {
    return error;
  }
  if (keep_contents) {
    ISTHMUS_TRY(download({range, nullptr, Waiting::this_call}));
  } else {
    ISTHMUS_TRY(ensure_host());
    begin_host();
    ISTHMUS_TRY(wait_for_downloads(range));
  }
  writing_.reserve(writing_.size() + 1);
  RangeSet written{range};
  auto pointer = host_->begin_write(range, keep_contents, current_writers());
  ISTHMUS_TRY(pointer);
  writing_.push_back({range, std::move(written), *pointer});
  return pointer;
}

// Does not report failed copies; the next call does.
Result<void> UnifiedBuffer::end_host_write(const ByteRange& range, bool contents_kept) {
  const auto held = enter();
  const auto found = std::find_if(writing_.rbegin(), writing_.rend(), [&](const ExactWrite& each) {
    return each.range == range && !each.has_ended;
  });
  if (found == writing_.rend()) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "no write of bytes {} to {} is in progress",
                range.begin, range.end);
  }
  const auto write = std::prev(found.base());
  if (auto error = validate(range)) {
    writing_.erase(write);
    release_host();
    return error;
  }
  write->contents_kept = contents_kept;
  write->has_ended = true;
  ISTHMUS_TRY(publish(
      *write));  // before anything that may fail: afterwards other threads may write through views
  return complete_all();
}

// Orders `queue` after the uploads of the range in flight on other queues.
Result<void> UnifiedBuffer::order_after_uploads(Queue& queue, const ByteRange& range) const {
  std::vector<Ref<Event>> uploads;
  for (const auto* each : inflight_.overlapping(range, true)) {
    if (each->queue_serial() != queue.serial()) {
      uploads.push_back(each->event);
    }
  }
  return uploads.empty() ? Result<void>{} : queue.order_after(uploads);
}

Result<Ref<Buffer>> UnifiedBuffer::device(const SyncRequest& request) {
  const auto held = enter();
  if (auto error = validate(request.range)) {
    return error;
  }
  ISTHMUS_TRY(upload(request));
  device_holds_nothing_ = false;
  auto& queue = queue_for(request);
  // Holds a reference during the wait. A callback that runs meanwhile may free this buffer, or
  // request memory, for which unused device copies are released.
  const auto buffer = device_;
  ISTHMUS_TRY(order_after_uploads(queue, request.range));
  if (auto error = validate(request.range)) {
    return error;
  }
  return &queue == queue_.get() ? Result<Ref<Buffer>>{buffer} : buffer->on_queue(queue);
}

// Rounds to whole chunks if the host copy is hashed: after a complete upload of a chunk, later host
// writes to it can be detected.
ByteRange UnifiedBuffer::whole_chunks(const ByteRange& range) const noexcept {
  if (!host_ || host_->mechanism() != tracking::TrackingMechanism::hashes) {
    return range;
  }
  const auto chunk = host_->granule();
  return {range.begin / chunk * chunk, std::min(request_.nbytes, round_up(range.end, chunk))};
}

Result<Ref<Buffer>> UnifiedBuffer::begin_device_write(const SyncRequest& request) {
  const auto held = enter();
  if (auto error = validate(request.range)) {
    return error;
  }
  const bool is_new = open_device_write(request.range) == device_writes_.end();
  if (is_new) {
    device_writes_.push_back({request.range});
  }
  Undo remove_write{[&] {
    if (const auto at = open_device_write(request.range); is_new && at != device_writes_.end()) {
      device_writes_.erase(at);
    }
  }};
  if (host_is_valid_ && !one_memory_) {
    host_->refine(
        request
            .range);  // before the upload, which also sends the host writes found in whole granules
  }
  auto first = request;
  first.range = whole_chunks(request.range);
  auto buffer = device(first);
  ISTHMUS_TRY(buffer);
  remove_write.dismiss();
  return buffer;
}

}  // namespace isthmus
