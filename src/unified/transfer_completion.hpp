// SPDX-License-Identifier: Apache-2.0
#pragma once
// Records the transfers of a unified buffer that have completed, and reports those that failed. Not
// thread-safe: the buffer's lock guards it.
//
// Every failed copy is reported: by the call that waits for it, by its event, or else once by the
// next call that copies, marks or returns bytes of the buffer. Queries do not report it. If a
// completed transfer cannot be recorded, for example for lack of memory, it remains in flight and
// the next call records it.

#include <vector>

#include "backend/event.hpp"
#include "core/range_set.hpp"
#include "core/status.hpp"
#include "unified/unified_copies.hpp"
#include "unified/write_recorder.hpp"

namespace isthmus {

class TransferCompletion {
 public:
  TransferCompletion(UnifiedCopies& copies, WriteRecorder& recorder) noexcept
      : copies_{copies}, recorder_{recorder} {}

  // Records completed transfers, then exact writes that have ended. No effect in a forked child.
  [[nodiscard]] Result<void> complete_all();
  // Returns one error for all failed copies, except those whose failure a caller has already seen
  // through the copy's event.
  [[nodiscard]] Result<void> report_failed();
  // `complete_all`, then `report_failed`.
  [[nodiscard]] Result<void> complete_and_report();
  // Whether a later call may report a failed copy.
  [[nodiscard]] bool has_failed() const noexcept { return !failed_copies_.empty(); }
  // No call reports the copies that have failed so far.
  void forget_failed() noexcept { failed_copies_.clear(); }
  // Waits for the transfers of the range in one direction, and records them.
  [[nodiscard]] Result<void> wait_for(const ByteRange& range, bool to_device);
  // `wait_for`, then `complete_and_report`.
  [[nodiscard]] Result<void> wait_and_report(const ByteRange& range, bool to_device);
  // Called when the host copy has received these bytes of the device.
  void finish_download(const RangeSet& ranges);

 private:
  struct FailedCopy {
    Ref<Event> event;
    bool to_device;
  };
  [[nodiscard]] Result<void> complete_inflight();
  // For transfers that have completed.
  [[nodiscard]] Result<void> complete(InflightTransfer& transfer);
  [[nodiscard]] Result<void> record(InflightTransfer& transfer);
  void restore_failed_upload(const InflightTransfer& upload);
  [[nodiscard]] Result<void> record_download(const InflightTransfer& download);

  UnifiedCopies& copies_;
  WriteRecorder& recorder_;
  // Failed copies that the next call reports, unless a caller sees the failure through the event
  // first.
  std::vector<FailedCopy> failed_copies_;
};

}  // namespace isthmus
