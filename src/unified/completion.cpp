// SPDX-License-Identifier: Apache-2.0
// Updates the dirty ranges when transfers complete, and reports failed transfers.

#include "os/process.hpp"
#include "unified/range_offsets.hpp"
#include "unified/unified_buffer.hpp"

namespace isthmus {
namespace {

// Returns the error with which a later call reports a failed copy.
Error describe_failed(const Event& event, bool to_device) {
  return fail(event.outcome().code(),
              "a copy of this unified buffer to the {} failed after the call that started it had "
              "returned: {}; the next call that needs the bytes copies them again",
              to_device ? "device" : "host", event.outcome().message());
}

}  // namespace

Result<void> UnifiedBuffer::complete_and_report() {
  ISTHMUS_TRY(complete_all());
  return report_failed();
}

// Returns one error for all failed copies, except those whose failure a caller has already seen
// through the copy's event.
Result<void> UnifiedBuffer::report_failed() {
  std::erase_if(failed_copies_, [](const FailedCopy& copy) { return copy.event->reported(); });
  if (failed_copies_.empty()) {
    return {};
  }
  const auto failures = std::exchange(failed_copies_, {});
  const auto cause = describe_failed(*failures.front().event, failures.front().to_device);
  return fail(
      cause.code(), "{}{}", cause.message(),
      failures.size() == 1
          ? ""
          : fmt::format(" (other failed copies of this unified buffer: {})", failures.size() - 1));
}

Result<void> UnifiedBuffer::complete_all() {
  if (os::is_forked_child()) {
    return {};
  }
  ISTHMUS_TRY(complete_inflight());
  return count_ended_writes();
}

// Before a download counts as completed, the host copy is scanned for writes since the download
// began. If a completed transfer cannot be counted, for example for lack of memory, it remains in
// the list.
Result<void> UnifiedBuffer::complete_inflight() {
  for (auto transfer = inflight_.begin(); transfer != inflight_.end();) {
    if (transfer->second.event->pending()) {
      transfer = inflight_.next_after(transfer);
      continue;
    }
    ISTHMUS_TRY(complete(transfer->second));
    transfer = inflight_.erase(transfer);
  }
  return {};
}

Result<void> UnifiedBuffer::complete(InflightTransfer& transfer) {
  if (failed_copies_.size() == failed_copies_.capacity()) {
    failed_copies_.reserve(2 * failed_copies_.size() + 1);
  }
  ISTHMUS_TRY(count_completed(transfer));
  if (!transfer.event->succeeded() && !transfer.is_forgotten) {
    failed_copies_.push_back({transfer.event, transfer.to_device});
  }
  return {};
}

// Makes the ranges of a failed upload dirty again, except those that a later device write or a
// later upload has replaced. Ranges of a later device write would be a false conflict.
void UnifiedBuffer::restore_failed_upload(const InflightTransfer& upload) {
  auto restored = upload.ranges;
  restored.remove(upload.outdated);
  for (const auto* other_upload : inflight_.overlapping(upload.span(), true)) {
    if (upload.is_before(*other_upload)) {
      restored.remove(other_upload->ranges);
    }
  }
  auto not_written_since = restored;
  not_written_since.remove(host_dirty_);
  host_dirty_again_.add(not_written_since);
  host_dirty_.add(restored);
}

// The ranges of a failed download remain dirty.
Result<void> UnifiedBuffer::count_completed(InflightTransfer& transfer) {
  const bool succeeded = transfer.event->poll() == ISTHMUS_OK;
  if (transfer.to_device) {
    for (auto* upload : inflight_.overlapping(transfer.span(), true)) {
      if (upload->is_before(transfer)) {
        upload->outdated.add(transfer.ranges);
      }
    }
    succeeded ? device_held_.add(transfer.ranges) : restore_failed_upload(transfer);
    return {};
  }
  if (!succeeded) {
    return {};
  }
  ISTHMUS_TRY(scan_host());
  // Excludes bytes that the device has written since, that the host has written, or that an open
  // exact write covers.
  auto downloaded = without_open_writes(transfer.ranges.common(device_dirty_));
  downloaded.remove(transfer.outdated);
  downloaded.remove(host_dirty_);
  if (transfer.block) {
    scatter(host_->library(), transfer.ranges, transfer.block.get(), downloaded);
  }
  if (one_memory_) {
    ISTHMUS_TRY(host_->snapshot(downloaded, tracking::Writers::some));
  } else {
    ISTHMUS_TRY(host_->publish(downloaded, current_writers()));
  }
  on_downloaded(downloaded);
  return {};
}

// Changes both sets or neither: host writes are detected only in `host_held_`, so writes to bytes
// that are clean but not in `host_held_` would be missed.
void UnifiedBuffer::on_downloaded(const RangeSet& ranges) {
  const auto held_change = host_held_.prepare_add(ranges);
  device_dirty_.remove(ranges);
  host_held_.apply(held_change);
  if (device_writes_.empty()) {
    host_->coarsen(device_dirty_);
  } else {
    host_->coarsen(written_by_device());
  }
}

Result<void> UnifiedBuffer::wait_for_uploads(const ByteRange& range) {
  ISTHMUS_TRY(wait_for_transfers(range, true));
  return complete_and_report();
}

Result<void> UnifiedBuffer::wait_for_transfers(const ByteRange& range, bool to_device) {
  if (inflight_.empty() || os::is_forked_child()) {
    return {};
  }
  for (auto* transfer : inflight_.overlapping(range, to_device)) {
    wait_until_ended(std::span{&transfer->event, 1});
    ISTHMUS_TRY(complete(*transfer));
    inflight_.erase(*transfer);
  }
  return {};
}

Result<void> UnifiedBuffer::wait_for_downloads(const ByteRange& range) {
  ISTHMUS_TRY(wait_for_transfers(range, false));
  return complete_and_report();
}

}  // namespace isthmus
