// SPDX-License-Identifier: Apache-2.0
#pragma once
// Records the writes of both sides in the state of a unified buffer: the host writes that scans
// detect, the exact writes, and the writes that the program reports. Not thread-safe: the buffer's
// lock guards it.
//
// If a write cannot be recorded, for example for lack of memory, it is kept and the next call
// records it. Until then no call copies bytes of the buffer.

#include "core/range_set.hpp"
#include "core/status.hpp"
#include "unified/unified_copies.hpp"

namespace isthmus {

class WriteRecorder {
 public:
  explicit WriteRecorder(UnifiedCopies& copies) noexcept : copies_{copies} {}

  // Whether host writes since the last scan are possible.
  [[nodiscard]] bool needs_scan() const noexcept {
    return copies_.host && copies_.state.host_is_valid() &&
           copies_.host.writers() != tracking::Writers::none;
  }
  // Scans the host copy if necessary, and records the detected writes. No effect in a forked child.
  [[nodiscard]] Result<void> scan();
  // For callers that scan themselves: they add the detected ranges to `detected`, and `scan` or
  // `record_detected` records them.
  [[nodiscard]] RangeSet& detected() noexcept { return detected_; }
  [[nodiscard]] Result<void> record_detected();

  // Makes the bytes of a host write visible in views. This happens only once, so that later writes
  // through views are not overwritten.
  [[nodiscard]] Result<void> publish(ExactHostWrite& write);
  // Records and removes the exact writes that have ended.
  [[nodiscard]] Result<void> record_ended();
  [[nodiscard]] Result<void> record_host_write(const RangeSet& written, bool replaces_device);
  // Completed transfers are recorded before.
  [[nodiscard]] Result<void> record_device_write(const ByteRange& range);
  // Makes the present contents of the ranges count as synchronized, except those of open exact
  // writes. Host writes that are dirty remain so.
  [[nodiscard]] Result<void> synchronize(const RangeSet& ranges);
  // Discards host writes: the bytes count as synchronized, since the device's bytes will replace
  // them.
  [[nodiscard]] Result<void> discard_host_writes(const RangeSet& ranges);

 private:
  [[nodiscard]] RangeSet rounded_to_elements(const RangeSet& ranges) const;
  [[nodiscard]] Result<void> record_exact_host_write(ExactHostWrite& write);

  UnifiedCopies& copies_;
  // Host writes that scans detected and that are not recorded yet. The kernel reports a write only
  // once.
  RangeSet detected_;
};

}  // namespace isthmus
