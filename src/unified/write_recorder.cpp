// SPDX-License-Identifier: Apache-2.0
#include "unified/write_recorder.hpp"

#include <algorithm>

#include "core/undo.hpp"
#include "os/process.hpp"

namespace isthmus {

Result<void> WriteRecorder::scan() {
  if (!needs_scan() || os::is_forked_child()) {
    return {};
  }
  copies_.host.begin_scan();
  Undo restore_unscanned{[this] { copies_.host.mark_unscanned(); }};
  copies_.host->take(detected_);
  ISTHMUS_TRY(record_detected());
  restore_unscanned.dismiss();
  return {};
}

// If writes are detected by comparing bytes, extends the ranges to whole elements. Ranges of pages
// and hashed blocks are returned unchanged.
RangeSet WriteRecorder::rounded_to_elements(const RangeSet& ranges) const {
  const auto item = copies_.request.element_bytes;
  if (item == 1 || ranges.empty() ||
      copies_.host->mechanism() != tracking::TrackingMechanism::bytes) {
    return ranges;
  }
  RangeSet rounded;
  for (const auto& range : ranges) {
    const auto end = (range.end + item - 1) / item * item;
    rounded.add(ByteRange{range.begin / item * item, std::min(end, copies_.request.nbytes)});
  }
  return rounded;
}

Result<void> WriteRecorder::record_detected() {
  if (detected_.empty()) {
    return {};
  }
  ISTHMUS_TRY(discard_host_writes(copies_.state.add_detected_writes(
      copies_.writes.without_host_ranges(rounded_to_elements(detected_)))));
  detected_.clear();
  return {};
}

Result<void> WriteRecorder::publish(ExactHostWrite& write) {
  if (!write.is_published) {
    ISTHMUS_TRY(
        copies_.host->end_write(write.range, write.written, write.address, copies_.host.writers()));
    write.is_published = true;
  }
  return {};
}

Result<void> WriteRecorder::record_ended() {
  return copies_.writes.record_ended(
      [this](ExactHostWrite& write) { return record_exact_host_write(write); },
      [this](const ExactDeviceWrite& write) { return record_device_write(write.range); });
}

// Without `contents_kept` the host wrote the complete range, so device writes there are obsolete.
Result<void> WriteRecorder::record_exact_host_write(ExactHostWrite& write) {
  ISTHMUS_TRY(publish(write));
  return record_host_write(write.written, !write.contents_kept || copies_.is_one_memory);
}

Result<void> WriteRecorder::record_host_write(const RangeSet& written, bool replaces_device) {
  return discard_host_writes(copies_.state.add_host_writes(written, replaces_device));
}

Result<void> WriteRecorder::record_device_write(const ByteRange& range) {
  if (!copies_.state.host_is_valid()) {
    return {};  // the device copy is the only one
  }
  ISTHMUS_TRY(scan());
  const RangeSet written{range};
  for (const bool to_device : {false, true}) {
    for (auto* transfer : copies_.inflight.overlapping(range, to_device)) {
      transfer->outdated.add(range);
    }
  }
  copies_.state.add_device_held(written);
  copies_.device.note_written(written);
  return discard_host_writes(copies_.state.add_device_writes(written));
}

Result<void> WriteRecorder::synchronize(const RangeSet& ranges) {
  ISTHMUS_TRY(
      copies_.host->snapshot(copies_.writes.without_host_ranges(ranges), tracking::Writers::some));
  return {};
}

Result<void> WriteRecorder::discard_host_writes(const RangeSet& ranges) {
  if (ranges.empty()) {
    return {};
  }
  ISTHMUS_TRY(synchronize(ranges));
  copies_.state.discard_host_writes(ranges);
  return {};
}

}  // namespace isthmus
