// SPDX-License-Identifier: Apache-2.0
#pragma once
// Copies ranges that the device wrote to the host copy of a unified buffer. Not thread-safe: the
// buffer's lock guards it.

#include "core/range_set.hpp"
#include "core/status.hpp"
#include "transfer/transfer_options.hpp"
#include "unified/transfer_completion.hpp"
#include "unified/unified_copies.hpp"
#include "unified/write_recorder.hpp"

namespace isthmus {

class Downloader {
 public:
  Downloader(UnifiedCopies& copies, WriteRecorder& recorder,
             TransferCompletion& completion) noexcept
      : copies_{copies}, recorder_{recorder}, completion_{completion} {}

  // Creates the host copy and downloads the dirty ranges within the request's range. The returned
  // event is null if nothing was submitted, or if the download has completed.
  [[nodiscard]] Submitted download(const SyncRequest& request);
  // Downloads the ranges that are known to be dirty, without a scan for host writes. `is_first` is
  // set if this call created the host copy.
  [[nodiscard]] Submitted download_known(const SyncRequest& request, bool is_first);
  // Returns an event for what a call on the range would wait for: see `UnifiedBuffer::arrival`.
  [[nodiscard]] Submitted arrival(const SyncRequest& request, BeforeArrival mode);

 private:
  [[nodiscard]] Result<bool> would_wait(const SyncRequest& request);
  [[nodiscard]] Result<void> fetch_early(const SyncRequest& request);
  [[nodiscard]] Result<void> collect_work(Queue& queue, std::vector<Ref<Event>>& pending);
  // Returns `ranges` without those that a download in flight brings.
  [[nodiscard]] RangeSet without_inflight(RangeSet ranges, const ByteRange& range) const;
  [[nodiscard]] Submitted fetch(const RangeSet& ranges, const SyncRequest& request);
  [[nodiscard]] Submitted await_device(InflightTransfers::Entry entry, const SyncRequest& request);
  [[nodiscard]] bool needs_block(bool is_blocking) const noexcept;
  [[nodiscard]] Submitted record_submitted(InflightTransfers::Entry entry, const Ref<Event>& event);

  UnifiedCopies& copies_;
  WriteRecorder& recorder_;
  TransferCompletion& completion_;
};

}  // namespace isthmus
