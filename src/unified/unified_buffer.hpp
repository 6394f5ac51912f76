// SPDX-License-Identifier: Apache-2.0
#pragma once
// A unified buffer: a host copy and a device copy of the same bytes, synchronized lazily.
//
// This class serializes the calls and composes what they do from its parts, each of which has a
// header of its own:
//  - DirtyState: the bytes that each copy holds, and those that it lacks;
//  - ExactWrites, InflightTransfers: the writes and transfers that have not ended;
//  - HostCopy, DeviceCopy: the memory (UnifiedCopies has all of these);
//  - WriteRecorder: detects and records writes;
//  - TransferCompletion: records transfers that have completed, and reports those that failed;
//  - Uploader, Downloader: copy dirty ranges.
// Host writes are detected when the state is needed (tracking/); the program reports device writes.
//
// Invariants:
//  - No byte is copied from a side that never held it: uploads and downloads refuse such ranges
//    (INTERNAL).
//  - Every failed copy is reported (transfer_completion.hpp).
//  - An operation that reads bytes of the device copy depends on the last upload of these bytes
//    (memory/records/content_list.hpp).
//  - Bytes that both sides wrote are not copied until the conflict is resolved. A device write
//    counts as later than every upload of its bytes that began before the write was marked,
//    whatever the outcome of the upload. It conflicts with host writes since then.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "buffer/buffer.hpp"
#include "core/mutex.hpp"
#include "core/range_set.hpp"
#include "core/thread_safety.hpp"
#include "os/lock_unless_forked.hpp"
#include "transfer/transfer_options.hpp"
#include "unified/downloader.hpp"
#include "unified/requests.hpp"
#include "unified/state.hpp"
#include "unified/transfer_completion.hpp"
#include "unified/unified_copies.hpp"
#include "unified/unified_list.hpp"
#include "unified/uploader.hpp"
#include "unified/write_recorder.hpp"

namespace isthmus {

struct UnifiedFacts {
  BufferState state = BufferState::uninitialized;
  // Largest number of bytes reported for a write of one byte; 0 if there is no host copy.
  std::uint64_t granule = 0;
  tracking::TrackingMechanism mechanism = tracking::TrackingMechanism::bytes;
  bool is_pinned = false;
  bool is_one_memory = false;
  std::size_t host_views = 0;
  UnifiedCounts counts;
};

// Thread-safe: calls are serialized by a lock, which writes through host views and `end_host_view`
// do not need. The lock is recursive, since calls may run callbacks of the program that use the
// buffer or free it. In a forked child only calls that need no driver succeed; they access a
// private copy.
class UnifiedBuffer final : public ListedBuffer {
 public:
  UnifiedBuffer(Queue& queue, const UnifiedRequest& request, MemoryResource* resource);
  [[nodiscard]] static Result<Ref<UnifiedBuffer>> create(Queue& queue,
                                                         const UnifiedRequest& request,
                                                         MemoryResource* resource);

  // These never change, so they need no lock.
  [[nodiscard]] std::size_t nbytes() const noexcept ISTHMUS_NO_THREAD_SAFETY_ANALYSIS {
    return copies_.request.nbytes;
  }
  [[nodiscard]] ByteRange all() const noexcept ISTHMUS_NO_THREAD_SAFETY_ANALYSIS {
    return copies_.all();
  }
  [[nodiscard]] Queue& queue() const noexcept ISTHMUS_NO_THREAD_SAFETY_ANALYSIS {
    return *copies_.queue;
  }
  // Releases the device copy at once, and the host copy when its last view has ended. Further calls
  // have no effect.
  void free() noexcept;

  // The following queries scan for host writes first, so their results are current.
  [[nodiscard]] Result<UnifiedFacts> facts();
  struct Dirty {
    RangeSet host;    // written on the host; the device lacks them
    RangeSet device;  // written on the device; the host lacks them
  };
  [[nodiscard]] Result<Dirty> dirty_ranges();

  // Returns the host copy, current in `range`. Writes to it are detected until `end_host_view`.
  [[nodiscard]] Result<std::byte*> begin_host_view(const ByteRange& range);
  void end_host_view() noexcept ISTHMUS_NO_THREAD_SAFETY_ANALYSIS;
  // The same for reading only. The pointer is valid while the caller holds a reference to the
  // buffer.
  [[nodiscard]] Result<const std::byte*> read_host(const ByteRange& range);
  // Returns memory for a host write of exactly this range, which needs no dirty tracking. With
  // `keep_contents` the memory holds the present contents. Views show the bytes at the latest when
  // `end_host_write` returns. `end_host_write` ends the write even if it fails; the next call then
  // records the write.
  [[nodiscard]] Result<std::byte*> begin_host_write(const ByteRange& range, bool keep_contents);
  [[nodiscard]] Result<void> end_host_write(const ByteRange& range, bool contents_kept);
  // Returns the complete device copy, current in the requested range, as a buffer on the requested
  // queue.
  [[nodiscard]] Result<Ref<Buffer>> device(const SyncRequest& request);
  // The same for a device write of exactly that range. `mark_device` of the same range ends the
  // write; it does not report failed copies, which the next call does. If `mark_device` fails, the
  // next call marks the range.
  [[nodiscard]] Result<Ref<Buffer>> begin_device_write(const SyncRequest& request);

  // Upload or download the dirty ranges. The returned event is null if nothing is in flight.
  // Errors: CONFLICT, and the errors of allocations and copies. After an error all dirty ranges are
  // still dirty.
  [[nodiscard]] Submitted to_device(const SyncRequest& request);
  [[nodiscard]] Submitted to_host(const SyncRequest& request);
  // Returns an event for everything that a call on the range would wait for, except its own copy;
  // null if there is nothing. A caller can wait for the event outside the buffer's lock, and stop
  // waiting. Errors as for `to_host`; an event of several operations does not fail.
  [[nodiscard]] Submitted arrival(const SyncRequest& request, BeforeArrival mode);
  // Uploads many buffers, with one scan for host writes and concurrent copies.
  [[nodiscard]] static Result<void> to_device(std::span<UnifiedBuffer* const> buffers,
                                              Queue* queue);

  [[nodiscard]] Result<void> mark_host(const ByteRange& range);
  [[nodiscard]] Result<void> mark_device(const ByteRange& range);
  // Resolves conflicts in the range: the losing side's writes are discarded. Bytes that the
  // winner's copy never held remain dirty on the other side.
  [[nodiscard]] Result<void> resolve(Winner winner, const ByteRange& range);
  // Marks both copies as synchronized regardless of their contents, for a caller that overwrites
  // everything next. A device copy without a host copy then counts as empty until it is returned to
  // a caller or marked.
  [[nodiscard]] Result<void> forget();

  // Releases the device copy if it is unused, and the host copy is current or the device copy holds
  // nothing. Returns the number of bytes released.
  [[nodiscard]] std::uint64_t release_device_copy() override;
  [[nodiscard]] bool uses_device(const isthmus::Device& device) const noexcept override;

 private:
  using Lock = os::LockUnlessForked<RecursiveMutex>;

  ~UnifiedBuffer() override;
  [[nodiscard]] Error validate(const ByteRange& range) const ISTHMUS_REQUIRES(lock_);
  // Scans for host writes first.
  [[nodiscard]] Result<BufferState> state() ISTHMUS_REQUIRES(lock_);
  [[nodiscard]] Result<const std::byte*> current_host(const ByteRange& range)
      ISTHMUS_REQUIRES(lock_);
  void release_host() noexcept ISTHMUS_REQUIRES(lock_);
  [[nodiscard]] Result<void> resolve_for_device(const ByteRange& range) ISTHMUS_REQUIRES(lock_);
  [[nodiscard]] bool can_release_device() const noexcept ISTHMUS_REQUIRES(lock_);
  // These two access the buffers under `locks`, which the analysis cannot follow.
  [[nodiscard]] static Result<void> scan_all(std::span<UnifiedBuffer* const> buffers,
                                             std::deque<Lock>& locks)
      ISTHMUS_NO_THREAD_SAFETY_ANALYSIS;
  [[nodiscard]] static Result<void> upload_all(std::span<UnifiedBuffer* const> buffers,
                                               Queue* queue) ISTHMUS_NO_THREAD_SAFETY_ANALYSIS;

  RecursiveMutex lock_;
  // Set under the lock, read without it by `end_host_view`.
  std::atomic<bool> freed_{false};
  // `end_host_view` accesses the views of the host copy without the lock.
  UnifiedCopies copies_ ISTHMUS_GUARDED_BY(lock_);
  WriteRecorder recorder_ ISTHMUS_GUARDED_BY(lock_){copies_};
  TransferCompletion completion_ ISTHMUS_GUARDED_BY(lock_){copies_, recorder_};
  Uploader uploader_ ISTHMUS_GUARDED_BY(lock_){copies_, recorder_, completion_};
  Downloader downloader_ ISTHMUS_GUARDED_BY(lock_){copies_, recorder_, completion_};
  // Neither returned nor marked since `forget`.
  bool device_holds_nothing_ ISTHMUS_GUARDED_BY(lock_) = false;
};

}  // namespace isthmus
