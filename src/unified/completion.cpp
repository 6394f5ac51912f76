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
  std::erase_if(failed_, [](const FailedCopy& each) { return each.event->reported(); });
  if (failed_.empty()) {
    return {};
  }
  const auto all = std::exchange(failed_, {});
  const auto cause = describe_failed(*all.front().event, all.front().to_device);
  return fail(cause.code(), "{}{}", cause.message(),
              all.size() == 1 ? ""
                              : fmt::format(" (other failed copies of this unified buffer: {})",
                                            all.size() - 1));
}

Result<void> UnifiedBuffer::complete_all() {
  if (os::is_forked_child()) {
    return {};
  }
  ISTHMUS_TRY(complete_inflight());
  return count_ended_writes();
}

// Before a download counts as completed, the host copy is scanned for writes since its beginning.
// If a completed transfer cannot be counted, for example for lack of memory, it remains in the
// list.
Result<void> UnifiedBuffer::complete_inflight() {
  for (auto each = inflight_.begin(); each != inflight_.end();) {
    if (each->second.event->pending()) {
      each = inflight_.next_after(each);
      continue;
    }
    ISTHMUS_TRY(complete(each->second));
    each = inflight_.erase(each);
  }
  return {};
}

Result<void> UnifiedBuffer::complete(InflightTransfer& done) {
  if (failed_.size() == failed_.capacity()) {
    failed_.reserve(2 * failed_.size() + 1);
  }
  ISTHMUS_TRY(count_completed(done));
  if (!done.event->succeeded() && !done.is_forgotten) {
    failed_.push_back({done.event, done.to_device});
  }
  return {};
}

// Makes the ranges of a failed upload dirty again, except those that a later device write or a
// later upload has replaced. After a device write they would be a false conflict.
void UnifiedBuffer::restore_failed_upload(const InflightTransfer& failed) {
  auto restored = failed.ranges;
  restored.remove(failed.outdated);
  for (const auto* other : inflight_.overlapping(failed.span(), true)) {
    if (failed.is_before(*other)) {
      restored.remove(other->ranges);
    }
  }
  auto not_written_since = restored;
  not_written_since.remove(host_dirty_);
  host_dirty_again_.add(not_written_since);
  host_dirty_.add(restored);
}

// The ranges of a failed download remain dirty.
Result<void> UnifiedBuffer::count_completed(InflightTransfer& done) {
  const bool succeeded = done.event->poll() == ISTHMUS_OK;
  if (done.to_device) {
    for (auto* other : inflight_.overlapping(done.span(), true)) {
      if (other->is_before(done)) {
        other->outdated.add(done.ranges);
      }
    }
    succeeded ? device_held_.add(done.ranges) : restore_failed_upload(done);
    return {};
  }
  if (!succeeded) {
    return {};
  }
  ISTHMUS_TRY(scan_host());
  // Excludes bytes that the device has written since, that the host has written, or that an open
  // exact write covers.
  auto arrived = without_open_writes(done.ranges.common(device_dirty_));
  arrived.remove(done.outdated);
  arrived.remove(host_dirty_);
  if (done.block) {
    scatter(host_->library(), done.ranges, done.block.get(), arrived);
  }
  if (one_memory_) {
    ISTHMUS_TRY(host_->snapshot(arrived, tracking::Writers::some));
  } else {
    ISTHMUS_TRY(host_->publish(arrived, current_writers()));
  }
  on_downloaded(arrived);
  return {};
}

// Changes both sets or neither: host writes are detected only in `host_held_`, so writes to bytes
// that are clean but not in `host_held_` would be missed.
void UnifiedBuffer::on_downloaded(const RangeSet& ranges) {
  const auto held_change = host_held_.adding(ranges);
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
  for (auto* each : inflight_.overlapping(range, to_device)) {
    wait_until_ended(std::span{&each->event, 1});
    ISTHMUS_TRY(complete(*each));
    inflight_.erase(*each);
  }
  return {};
}

Result<void> UnifiedBuffer::wait_for_downloads(const ByteRange& range) {
  ISTHMUS_TRY(wait_for_transfers(range, false));
  return complete_and_report();
}

}  // namespace isthmus
