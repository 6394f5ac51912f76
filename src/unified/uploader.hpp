// SPDX-License-Identifier: Apache-2.0
#pragma once
// Copies ranges that the host wrote to the device copy of a unified buffer. Not thread-safe: the
// buffer's lock guards it.
//
// Host writes are detected before the copy is submitted. A write between the two is part of the
// copy and is reported by the next scan too.

#include <cstddef>
#include <span>
#include <vector>

#include "core/owner.hpp"
#include "core/range_set.hpp"
#include "core/status.hpp"
#include "transfer/endpoint.hpp"
#include "transfer/transfer_options.hpp"
#include "unified/transfer_completion.hpp"
#include "unified/unified_copies.hpp"
#include "unified/write_recorder.hpp"

namespace isthmus {

class Uploader {
 public:
  Uploader(UnifiedCopies& copies, WriteRecorder& recorder, TransferCompletion& completion) noexcept
      : copies_{copies}, recorder_{recorder}, completion_{completion} {}

  // Creates the device copy and uploads the dirty ranges within the request's range. The returned
  // event is null if the caller need not wait for the upload.
  [[nodiscard]] Submitted upload(const SyncRequest& request);
  // The same without a scan. Completed transfers are recorded, and the host copy is scanned.
  [[nodiscard]] Submitted upload_known(const SyncRequest& request);
  // Orders `queue` after the uploads of the range in flight on other queues.
  [[nodiscard]] Result<void> order_after_uploads(Queue& queue, const ByteRange& range) const;
  // Waits for all events, including after a failure. Returns the first failure.
  [[nodiscard]] static Result<void> wait_for_events(std::span<const Ref<Event>> events);

 private:
  // A scanned chunk of the host copy. Its dirty bytes are copied from the memory that begins at
  // `source`, which is the address of offset 0 of the buffer.
  struct HostChunk {
    ByteRange range;
    const std::byte* source;
    tracking::Writers writers;
  };
  [[nodiscard]] Result<bool> should_upload_in_chunks(const SyncRequest& request);
  [[nodiscard]] Submitted upload_in_chunks(Queue& queue);
  [[nodiscard]] Result<void> upload_chunk(const HostChunk& chunk, Queue& queue,
                                          std::vector<Ref<Event>>& events);
  [[nodiscard]] Submitted send(const RangeSet& ranges, const SyncRequest& request);
  [[nodiscard]] Result<Endpoint> source_of(const RangeSet& ranges, const std::byte* origin,
                                           bool is_direct, std::vector<Owner>& owners) const;
  [[nodiscard]] Submitted submit(const RangeSet& ranges, const std::byte* origin, bool is_direct,
                                 TransferOptions options, Queue& queue);
  struct Record;
  void record_failed(Record& record, const Error& failure) noexcept;
  void record_submitted(Record& record, const Ref<Event>& event) noexcept;

  UnifiedCopies& copies_;
  WriteRecorder& recorder_;
  TransferCompletion& completion_;
};

}  // namespace isthmus
