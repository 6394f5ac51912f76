// SPDX-License-Identifier: Apache-2.0
// Access to the two copies: views, pointers for reading, and exact writes of ranges.

#include <algorithm>

#include "core/sizes.hpp"
#include "core/undo.hpp"
#include "os/process.hpp"
#include "unified/unified_buffer.hpp"

namespace isthmus {

Result<const std::byte*> UnifiedBuffer::read_host(const ByteRange& range) {
  const auto guard = enter();
  auto contents = current_host(range);
  has_read_pointers_ = has_read_pointers_ || contents;
  return contents;
}

// Downloads the range if necessary. If nothing is dirty or in flight this costs only a few loads.
Result<const std::byte*> UnifiedBuffer::current_host(const ByteRange& range) {
  if (auto error = validate(range)) {
    return error;
  }
  if (!host_is_valid_ || !device_dirty_.empty() || !inflight_.empty() || !failed_copies_.empty() ||
      has_uncounted()) {
    ISTHMUS_TRY(download({range, nullptr, Waiting::this_call}));
  }
  return host_->view() + range.begin;
}

Result<std::byte*> UnifiedBuffer::begin_host_view(const ByteRange& range) {
  const auto guard = enter();
  auto contents = current_host(range);
  ISTHMUS_TRY(contents);
  host_->expect_writers();
  views_.fetch_add(1, std::memory_order_acq_rel);
  return const_cast<std::byte*>(*contents);
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
  const auto guard = enter();
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
  host_writes_.reserve(host_writes_.size() + 1);
  RangeSet written_set{range};
  auto pointer = host_->begin_write(range, keep_contents, current_writers());
  ISTHMUS_TRY(pointer);
  host_writes_.push_back({range, std::move(written_set), *pointer});
  return pointer;
}

// Does not report failed copies; the next call does.
Result<void> UnifiedBuffer::end_host_write(const ByteRange& range, bool contents_kept) {
  const auto guard = enter();
  const auto newest_match =
      std::find_if(host_writes_.rbegin(), host_writes_.rend(),
                   [&](const ExactWrite& open) { return open.range == range && !open.has_ended; });
  if (newest_match == host_writes_.rend()) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "no write of bytes {} to {} is in progress",
                range.begin, range.end);
  }
  const auto write = std::prev(newest_match.base());
  if (auto error = validate(range)) {
    host_writes_.erase(write);
    release_host();
    return error;
  }
  write->contents_kept = contents_kept;
  write->has_ended = true;
  // Before anything that may fail: afterwards other threads may write through views.
  ISTHMUS_TRY(publish(*write));
  return complete_all();
}

// Orders `queue` after the uploads of the range in flight on other queues.
Result<void> UnifiedBuffer::order_after_uploads(Queue& queue, const ByteRange& range) const {
  std::vector<Ref<Event>> uploads;
  for (const auto* upload : inflight_.overlapping(range, true)) {
    if (upload->queue_serial() != queue.serial()) {
      uploads.push_back(upload->event);
    }
  }
  return uploads.empty() ? Result<void>{} : queue.order_after(uploads);
}

Result<Ref<Buffer>> UnifiedBuffer::device(const SyncRequest& request) {
  const auto guard = enter();
  if (auto error = validate(request.range)) {
    return error;
  }
  ISTHMUS_TRY(upload(request));
  device_holds_nothing_ = false;
  auto& queue = queue_for(request);
  // Keeps the device copy alive during the wait. A callback that runs meanwhile may free this
  // buffer, or may request memory, for which unused device copies are released.
  const auto buffer = device_;
  ISTHMUS_TRY(order_after_uploads(queue, request.range));
  if (auto error = validate(request.range)) {
    return error;
  }
  return &queue == queue_.get() ? Result<Ref<Buffer>>{buffer} : buffer->on_queue(queue);
}

// Rounds to whole granules if the host copy is hashed: after a complete upload of a hashed block,
// later host writes to the block can be detected.
ByteRange UnifiedBuffer::whole_granules(const ByteRange& range) const noexcept {
  if (!host_ || host_->mechanism() != tracking::TrackingMechanism::hashes) {
    return range;
  }
  const auto granule = host_->granule();
  return {range.begin / granule * granule, std::min(request_.nbytes, round_up(range.end, granule))};
}

Result<Ref<Buffer>> UnifiedBuffer::begin_device_write(const SyncRequest& request) {
  const auto guard = enter();
  if (auto error = validate(request.range)) {
    return error;
  }
  const bool is_new = open_device_write(request.range) == device_writes_.end();
  if (is_new) {
    device_writes_.push_back({request.range});
  }
  Undo remove_write{[&] {
    if (const auto write = open_device_write(request.range);
        is_new && write != device_writes_.end()) {
      device_writes_.erase(write);
    }
  }};
  if (host_is_valid_ && !one_memory_) {
    // Before the upload, which also sends the host writes that were found in whole granules.
    host_->refine(request.range);
  }
  auto upload_request = request;
  upload_request.range = whole_granules(request.range);
  auto buffer = device(upload_request);
  ISTHMUS_TRY(buffer);
  remove_write.dismiss();
  return buffer;
}

}  // namespace isthmus
