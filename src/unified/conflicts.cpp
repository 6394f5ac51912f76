// SPDX-License-Identifier: Apache-2.0
// Determines the ranges that each side wrote, and the conflicts between them.

#include <iterator>

#include "core/undo.hpp"
#include "os/process.hpp"
#include "transfer/ordering.hpp"
#include "unified/unified_buffer.hpp"

namespace isthmus {
namespace {

constexpr std::size_t k_max_named_ranges = 4;

// Returns a text like "0 to 4096, 8192 to 12288 and 3 more".
std::string name_ranges(const RangeSet& ranges) {
  std::string text;
  std::size_t named_ranges = 0;
  for (const auto& range : ranges) {
    if (named_ranges++ == k_max_named_ranges) {
      break;
    }
    fmt::format_to(std::back_inserter(text), "{}{} to {}", text.empty() ? "" : ", ", range.begin,
                   range.end);
  }
  if (ranges.size() > k_max_named_ranges) {
    fmt::format_to(std::back_inserter(text), " and {} more", ranges.size() - k_max_named_ranges);
  }
  return text;
}

}  // namespace

bool UnifiedBuffer::needs_scan() const noexcept {
  return host_ && host_is_valid_ && current_writers() != tracking::Writers::none;
}

RangeSet UnifiedBuffer::without_open_writes(RangeSet ranges) const {
  for (const auto& write : host_writes_) {
    ranges.remove(write.written);
  }
  return ranges;
}

// Views begin under the lock, so a thread that holds the lock and sees no view has exclusive
// access. `views_` is loaded before `has_unscanned_writes_`, so that a view that ends between the
// two loads is visible in at least one of them.
tracking::Writers UnifiedBuffer::current_writers() const noexcept {
  const bool has_no_writers = views_.load(std::memory_order_acquire) == 0 &&
                              !has_unscanned_writes_.load(std::memory_order_acquire);
  return has_no_writers ? tracking::Writers::none : tracking::Writers::some;
}

// If a view ends during the scan, `has_unscanned_writes_` remains set for the next scan.
Result<void> UnifiedBuffer::scan_host() {
  if (!needs_scan() || os::is_forked_child()) {
    return {};
  }
  has_unscanned_writes_.store(false, std::memory_order_seq_cst);
  Undo restore_unscanned{[this] { has_unscanned_writes_.store(true, std::memory_order_seq_cst); }};
  host_->take(found_writes_);
  ISTHMUS_TRY(add_found_writes());
  restore_unscanned.dismiss();
  return {};
}

// If writes are detected by comparing bytes, extends the ranges to whole elements. Ranges of pages
// and hashed blocks are returned unchanged.
RangeSet UnifiedBuffer::rounded_to_elements(const RangeSet& ranges) const {
  const auto item = request_.element_bytes;
  if (item == 1 || ranges.empty() || host_->mechanism() != tracking::TrackingMechanism::bytes) {
    return ranges;
  }
  RangeSet rounded;
  for (const auto& range : ranges) {
    const auto end = (range.end + item - 1) / item * item;
    rounded.add(ByteRange{range.begin / item * item, std::min(end, request_.nbytes)});
  }
  return rounded;
}

// The kernel reports a write only once, so the range remains in `found_writes_` until it is
// counted.
Result<void> UnifiedBuffer::add_found_writes() {
  ISTHMUS_TRY(add_host_writes(without_open_writes(rounded_to_elements(found_writes_))));
  found_writes_.clear();
  return {};
}

// Writes are detected in granules. Bytes of a granule that the host copy never held cannot have
// been written by the host.
Result<void> UnifiedBuffer::add_host_writes(RangeSet written) {
  if (!host_held_.covers(written)) {
    written = written.common(host_held_);
  }
  if (written.empty()) {
    return {};
  }
  host_dirty_again_.remove(written);
  RangeSet overlap;
  if (one_memory_) {
    // With one memory it is unknown which side wrote these bytes; they count as written by the
    // device.
    written.remove(device_dirty_);
  } else if (request_.on_conflict != Winner::none) {
    overlap = written.common(device_dirty_);
  }
  if (request_.on_conflict == Winner::device) {
    written.remove(overlap);
    host_dirty_.add(written);
    return drop_host_writes(overlap);
  }
  const auto dirty_change = host_dirty_.prepare_add(written);
  device_dirty_.remove(overlap);
  host_dirty_.apply(dirty_change);
  return {};
}

// Discards host writes: the bytes count as synchronized, since the device's bytes will replace
// them.
Result<void> UnifiedBuffer::drop_host_writes(const RangeSet& ranges) {
  if (ranges.empty()) {
    return {};
  }
  ISTHMUS_TRY(host_->snapshot(without_open_writes(ranges), tracking::Writers::some));
  host_dirty_.remove(ranges);
  return {};
}

Result<void> UnifiedBuffer::check_conflict(const ByteRange& range) const {
  if (device_dirty_.empty() || host_dirty_.empty()) {
    return {};
  }
  const auto overlap = conflict().common({range});
  if (overlap.empty()) {
    return {};
  }
  return fail(ISTHMUS_ERROR_CONFLICT,
              "host and device both wrote bytes {} of a unified buffer: call resolve() for the "
              "host or the device, create the buffer with a winner, or keep the two from writing "
              "the same bytes ({} bytes, detected in granules of {} bytes)",
              name_ranges(overlap), overlap.nbytes(), host_ ? host_->granule() : 1);
}

BufferState UnifiedBuffer::current_state() const noexcept {
  if (!host_is_valid_) {
    return device_is_valid_ ? BufferState::device_only : BufferState::uninitialized;
  }
  if (!device_dirty_.empty()) {
    return BufferState::device_dirty;
  }
  if (!host_dirty_.empty()) {
    return BufferState::host_dirty;
  }
  return device_is_valid_ ? BufferState::synchronized : BufferState::host_only;
}

Result<void> UnifiedBuffer::mark_host(const ByteRange& range) {
  const auto guard = enter();
  if (auto error = validate(range)) {
    return error;
  }
  if (!host_is_valid_) {
    return fail(
        ISTHMUS_ERROR_INVALID_ARGUMENT,
        "the host copy does not exist yet, so it cannot have been written: access it first");
  }
  ISTHMUS_TRY(complete_all());
  ISTHMUS_TRY(scan_host());
  if (one_memory_) {
    device_dirty_.remove({range});
  }
  host_held_.add(range);
  ISTHMUS_TRY(add_host_writes({range}));
  return report_failed();  // after the range was marked
}

// Records that the device wrote these bytes, so that readers no longer depend on earlier copies
// into them.
void UnifiedBuffer::note_device_written(const RangeSet& ranges) {
  for (const auto& range : ranges) {
    if (auto endpoint = device_->at(range.begin, range.nbytes(), false)) {
      note_overwritten(*endpoint, range.nbytes(), {});
    }
  }
}

Result<void> UnifiedBuffer::mark_device(const ByteRange& range) {
  const auto guard = enter();
  if (auto error = validate(range)) {
    return error;
  }
  if (!device_is_valid_) {
    return fail(
        ISTHMUS_ERROR_INVALID_ARGUMENT,
        "the device copy does not exist yet, so it cannot have been written: access it first");
  }
  device_holds_nothing_ = false;
  if (const auto write = open_device_write(range); write != device_writes_.end()) {
    write->has_ended = true;
    return complete_all();  // reports no failed copy; the next call does
  }
  ISTHMUS_TRY(complete_all());
  ISTHMUS_TRY(count_device_write(range));
  return report_failed();  // after the range was marked
}

// Pre: completed transfers are counted.
Result<void> UnifiedBuffer::count_device_write(const ByteRange& range) {
  if (!host_is_valid_) {
    return {};  // the device copy is the only one
  }
  ISTHMUS_TRY(scan_host());
  const RangeSet marked{range};
  for (const bool to_device : {false, true}) {
    for (auto* transfer : inflight_.overlapping(range, to_device)) {
      transfer->outdated.add(range);
    }
  }
  device_held_.add(marked);
  note_device_written(marked);
  // Their failed upload preceded the device write, so there is no conflict.
  const auto replaced_ranges = host_dirty_again_.common(marked);
  auto overlap = host_dirty_.common(marked);
  overlap.remove(replaced_ranges);
  device_dirty_.add(marked);
  host_dirty_.remove(replaced_ranges);
  host_dirty_again_.remove(replaced_ranges);
  if (one_memory_ || request_.on_conflict == Winner::device) {
    ISTHMUS_TRY(drop_host_writes(one_memory_ ? marked : overlap));
  } else if (request_.on_conflict == Winner::host) {
    device_dirty_.remove(overlap);
  }
  return {};
}

Result<void> UnifiedBuffer::resolve(Winner winner, const ByteRange& range) {
  const auto guard = enter();
  if (auto error = validate(range)) {
    return error;
  }
  if (winner != Winner::host && winner != Winner::device) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "a conflict can be resolved only for the host or the device");
  }
  // A download in flight would overwrite the winner's bytes.
  ISTHMUS_TRY(wait_for_downloads(range));
  if (winner == Winner::device) {
    ISTHMUS_TRY(wait_for_uploads(range));  // so that `device_held_` is final for their bytes
  }
  ISTHMUS_TRY(scan_host());
  if (winner == Winner::host) {
    const auto losing_ranges = device_dirty_.common({range}).common(host_held_);
    host_dirty_again_.remove(losing_ranges);
    const auto dirty_change = host_dirty_.prepare_add(losing_ranges);
    device_dirty_.remove(losing_ranges);
    host_dirty_.apply(dirty_change);
    return {};
  }
  const auto losing_ranges = host_dirty_.common({range}).common(device_held_);
  const auto dirty_change = device_dirty_.prepare_add(losing_ranges);
  ISTHMUS_TRY(drop_host_writes(losing_ranges));
  device_dirty_.apply(dirty_change);
  note_device_written(losing_ranges);
  if (!host_is_valid_ || !device_is_valid_) {
    ISTHMUS_TRY(download({range, nullptr, Waiting::this_call}));
    return {};
  }
  // Downloads without a second scan, which would report the dropped writes again if they cover only
  // part of a hashed granule.
  ISTHMUS_TRY(download_known({range, nullptr, Waiting::this_call}, false));
  return {};
}

Result<void> UnifiedBuffer::forget() {
  const auto guard = enter();
  if (auto error = validate(all())) {
    return error;
  }
  ISTHMUS_TRY(wait_for_transfers(all(), false));
  ISTHMUS_TRY(complete_all());  // failures are reported only by the events of the copies
  ISTHMUS_TRY(scan_host());
  // All allocations come before the first change, so that a failure changes nothing.
  if (host_ && !host_dirty_.empty()) {
    ISTHMUS_TRY(host_->snapshot(without_open_writes(host_dirty_), tracking::Writers::some));
  }
  auto host_held = host_is_valid_ ? RangeSet{all()} : host_held_;
  auto device_held = device_is_valid_ ? RangeSet{all()} : device_held_;
  std::vector<RangeSet> outdated(inflight_.size(), RangeSet{all()});
  if (device_is_valid_) {
    note_device_written({all()});
  }
  host_dirty_.clear();
  host_dirty_again_.clear();
  device_dirty_.clear();
  host_held_ = std::move(host_held);
  device_held_ = std::move(device_held);
  device_holds_nothing_ = true;
  device_writes_.clear();
  failed_copies_.clear();
  for (auto& [key, transfer] : inflight_) {
    transfer.outdated = std::move(outdated.back());
    outdated.pop_back();
    transfer.is_forgotten = true;
  }
  return {};
}

}  // namespace isthmus
