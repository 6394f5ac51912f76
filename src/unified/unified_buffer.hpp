// SPDX-License-Identifier: Apache-2.0
#pragma once
// A unified buffer: a host copy and a device copy of the same bytes, synchronized lazily.
//
// Two sets of ranges describe the difference: dirty ranges of the host (`host_dirty_`), which the
// device copy lacks, and dirty ranges of the device (`device_dirty_`), which the host copy lacks.
// Host writes are detected when the state is needed (tracking/); the program reports device writes.
// A range becomes clean only when its copy has succeeded: an upload removes its ranges from the set
// when it is submitted and restores them if it fails. Bytes in both sets are a write conflict: they
// are not copied until the conflict is resolved. A device write counts as later than every upload
// of its bytes that began before the write was marked, whatever the outcome of the upload. It
// conflicts with host writes since then.
//
// Invariants:
//  - No byte is copied from a side that never held it. Two more sets (`host_held_`, `device_held_`)
//    record what each copy has held since it was created; `send` and `fetch` refuse anything else
//    (INTERNAL).
//  - Every failed copy is reported: by the call that waits for it, by its event, or else once by
//    the next call that copies, marks or returns bytes of the buffer. Queries do not report it.
//  - An operation that reads bytes of the device copy depends on the last upload of these bytes
//    (memory/records/content_list.hpp).
//
// If the device accesses host memory at full speed, one memory serves as both copies. The sets are
// maintained as usual, but nothing is copied. Since no write can be lost, the side whose write was
// reported last counts as the newer one.

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "buffer/buffer.hpp"
#include "core/range_set.hpp"
#include "memory/records/pins.hpp"
#include "tracking/tracked_memory.hpp"
#include "transfer/transfer.hpp"
#include "unified/inflight_transfers.hpp"
#include "unified/state.hpp"
#include "unified/unified_list.hpp"

namespace isthmus {

struct UnifiedRequest {
  std::size_t nbytes = 0;
  bool pinned = false;    // the host copy is registered with the driver
  bool separate = false;  // two copies even if one memory would suffice
  Winner on_conflict = Winner::none;
  tracking::Granularity granularity = tracking::Granularity::automatic;
  std::optional<tracking::TrackingMechanism> mechanism;
  std::size_t element_bytes = 1;  // detected writes are extended to whole elements
};

struct UnifiedCounts {
  std::uint64_t bytes_to_device = 0;
  std::uint64_t bytes_to_host = 0;
  std::uint64_t copies = 0;  // operations, each of any number of ranges
};

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

// What waits until an upload has read its source or a download has written the host copy: the call
// itself, the caller through the event, or the next use of the copy.
enum class Waiting : std::uint8_t { this_call, by_caller, next_use };

// What the event of `arrival` covers besides downloads in flight.
enum class BeforeArrival {
  nothing,
  fetch,  // begins downloads that would wait for work on the device, and covers them
  work,   // covers the work on the device copy and on the queue
};

struct SyncRequest {
  ByteRange range;
  Queue* queue = nullptr;  // null: the buffer's own queue
  Waiting waiting = Waiting::this_call;
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

  [[nodiscard]] std::size_t nbytes() const noexcept { return request_.nbytes; }
  [[nodiscard]] ByteRange all() const noexcept { return {0, request_.nbytes}; }
  [[nodiscard]] Queue& queue() const noexcept { return *queue_; }
  // Releases the device copy at once, and the host copy when its last view has ended. Further calls
  // have no effect.
  void free() noexcept;

  // The following queries scan for host writes first, so their results are current.
  [[nodiscard]] Result<UnifiedFacts> facts();
  [[nodiscard]] Result<BufferState> state();
  struct Dirty {
    RangeSet host;    // written on the host; the device lacks them
    RangeSet device;  // written on the device; the host lacks them
  };
  [[nodiscard]] Result<Dirty> dirty_ranges();

  // Returns the host copy, current in `range`. Writes to it are detected until `end_host_view`.
  [[nodiscard]] Result<std::byte*> begin_host_view(const ByteRange& range);
  void end_host_view() noexcept;
  // The same for reading only. The pointer is valid while the caller holds a reference to the
  // buffer.
  [[nodiscard]] Result<const std::byte*> read_host(const ByteRange& range);
  // Returns memory for a host write of exactly this range, which needs no dirty tracking. With
  // `keep_contents` the memory holds the present contents. Views show the bytes at the latest when
  // `end_host_write` returns. `end_host_write` ends the write even if it fails; the next call then
  // counts the write.
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
  friend class UnifiedList;
  using Lock = std::unique_lock<std::recursive_mutex>;
  struct FailedCopy {
    Ref<Event> event;
    bool to_device;
  };
  struct ExactWrite {
    ByteRange range;
    RangeSet written;    // the range as a set, allocated at the beginning of the write
    std::byte* address;  // the address that the writer received
    bool contents_kept = false;
    bool has_ended = false;  // not counted yet; the next call counts it
    bool is_published = false;
  };
  struct DeviceWrite {
    ByteRange range;
    bool has_ended = false;
  };

  ~UnifiedBuffer() override;
  // Locks the buffer, except in a forked child: it has no other threads, and a thread of the parent
  // may have held the lock.
  [[nodiscard]] Lock enter();
  [[nodiscard]] Error validate(const ByteRange& range) const;
  [[nodiscard]] Result<const std::byte*> current_host(const ByteRange& range);
  void release_host() noexcept;
  [[nodiscard]] Result<void> ensure_host();
  [[nodiscard]] Result<void> ensure_pin();
  void ensure_library_pin();
  void release_pins() noexcept;
  [[nodiscard]] Result<void> ensure_device();
  [[nodiscard]] Result<Ref<Buffer>> device_buffer_over_host();

  // ended_writes.cpp
  [[nodiscard]] bool has_uncounted() const noexcept;
  [[nodiscard]] std::vector<DeviceWrite>::iterator open_device_write(
      const ByteRange& range) noexcept;
  [[nodiscard]] Result<void> publish(ExactWrite& write);
  [[nodiscard]] Result<void> count_host_write(ExactWrite& write);
  [[nodiscard]] Result<void> count_ended_writes();
  [[nodiscard]] RangeSet written_by_device() const;

  // conflicts.cpp
  [[nodiscard]] bool needs_scan() const noexcept;
  // Returns `ranges` without the ranges of open exact writes.
  [[nodiscard]] RangeSet without_open_writes(RangeSet ranges) const;
  [[nodiscard]] RangeSet rounded_to_elements(const RangeSet& ranges) const;
  [[nodiscard]] tracking::Writers current_writers() const noexcept;
  [[nodiscard]] Result<void> scan_host();
  [[nodiscard]] Result<void> add_found_writes();
  [[nodiscard]] Result<void> add_host_writes(RangeSet written);
  [[nodiscard]] Result<void> check_conflict(const ByteRange& range) const;
  [[nodiscard]] RangeSet conflict() const { return host_dirty_.common(device_dirty_); }
  [[nodiscard]] Result<void> drop_host_writes(const RangeSet& ranges);
  void note_device_written(const RangeSet& ranges);
  [[nodiscard]] Result<void> count_device_write(const ByteRange& range);
  [[nodiscard]] BufferState current_state() const noexcept;

  // completion.cpp

  // Counts completed transfers, then reports the failed copies whose failure no caller has seen
  // through an event.
  [[nodiscard]] Result<void> complete_and_report();
  [[nodiscard]] Result<void> complete_all();
  [[nodiscard]] Result<void> complete_inflight();
  [[nodiscard]] Result<void> report_failed();
  [[nodiscard]] Result<void> wait_for_uploads(const ByteRange& range);
  void restore_failed_upload(const InflightTransfer& upload);
  // Pre: the transfer has completed.
  [[nodiscard]] Result<void> count_completed(InflightTransfer& transfer);
  [[nodiscard]] Result<void> complete(InflightTransfer& transfer);
  // Called when the host copy has received these bytes of the device.
  void on_downloaded(const RangeSet& ranges);
  // Waits for the transfers of the range in one direction, and counts them.
  [[nodiscard]] Result<void> wait_for_transfers(const ByteRange& range, bool to_device);
  [[nodiscard]] Result<void> wait_for_downloads(const ByteRange& range);

  // uploading.cpp and downloading.cpp
  [[nodiscard]] Submitted upload(const SyncRequest& request);
  [[nodiscard]] Result<bool> should_upload_in_chunks(const SyncRequest& request);
  [[nodiscard]] Submitted upload_in_chunks(Queue& queue);
  // A scanned chunk of the host copy. Its dirty bytes are copied from the memory that begins at
  // `source`, which is the address of offset 0 of the buffer.
  struct HostChunk {
    ByteRange range;
    const std::byte* source;
    tracking::Writers writers;
  };
  [[nodiscard]] Result<void> upload_chunk(const HostChunk& chunk, Queue& queue,
                                          std::vector<Ref<Event>>& events);
  void begin_device();
  void begin_host();
  [[nodiscard]] static Result<void> wait_for_events(std::span<const Ref<Event>> events);
  // Pre: completed transfers are counted, and the host copy is scanned for writes.
  [[nodiscard]] Submitted upload_known(const SyncRequest& request);
  [[nodiscard]] static Result<void> upload_all(std::span<UnifiedBuffer* const> buffers,
                                               Queue* queue);
  [[nodiscard]] Submitted download(const SyncRequest& request);
  [[nodiscard]] Submitted download_known(const SyncRequest& request, bool is_first);
  [[nodiscard]] Result<bool> would_wait(const SyncRequest& request);
  [[nodiscard]] Submitted send(const RangeSet& ranges, const SyncRequest& request);
  [[nodiscard]] Submitted submit_upload(const RangeSet& ranges, const std::byte* origin,
                                        bool is_direct, TransferOptions options, Queue& queue);
  [[nodiscard]] Submitted fetch(const RangeSet& ranges, const SyncRequest& request);
  [[nodiscard]] ByteRange whole_granules(const ByteRange& range) const noexcept;
  [[nodiscard]] Result<void> order_after_uploads(Queue& queue, const ByteRange& range) const;
  [[nodiscard]] Queue& queue_for(const SyncRequest& request) const noexcept {
    return request.queue != nullptr ? *request.queue : *queue_;
  }

  Ref<Queue> queue_;
  const UnifiedRequest request_;
  Ref<MemoryResource> resource_;
  const bool one_memory_;
  std::recursive_mutex lock_;
  std::atomic<bool> freed_{false};
  // Views begin under the lock and end without it. The end of a view sets `has_unscanned_writes_`
  // and then decrements `views_` (release). A thread that holds the lock may load 0 from `views_`
  // (acquire) and then false from `has_unscanned_writes_`. Then no view has written since the last
  // scan.
  std::atomic<std::size_t> views_{0};
  std::atomic<bool> has_unscanned_writes_{false};

  // Exact host writes that have begun and are not counted yet. Their bytes are reserved for the
  // writer: they are not scanned, uploaded or discarded.
  std::vector<ExactWrite> host_writes_;
  // The same for device writes; all open ones have different ranges. While a write is open the
  // device copy is not released. If there was a host copy when it began, host writes next to its
  // range are detected in the smallest granules.
  std::vector<DeviceWrite> device_writes_;
  // True once pointers were returned whose last use is unknown: the host copy is then retained.
  bool has_read_pointers_ = false;

  // Shared with the transfers in flight.
  std::shared_ptr<tracking::TrackedMemory> host_;
  Ref<Pin> pin_;
  Ref<Pin> library_pin_;  // pins `library` of hashed memory; `pin_` pins its view
  Ref<Buffer> device_;
  bool host_is_valid_ = false;         // the copy was requested, so its contents count
  bool device_is_valid_ = false;       // the same for the device copy
  bool device_holds_nothing_ = false;  // neither returned nor marked since `forget`
  // The ranges that each copy has held since it was created: everything if it was the first copy,
  // else the ranges that were copied to it or written in it.
  RangeSet host_held_;
  RangeSet device_held_;
  // Failed copies that the next call reports, unless a caller sees the failure through the event
  // first.
  std::vector<FailedCopy> failed_copies_;
  RangeSet found_writes_;  // host writes reported by scans, not counted yet
  RangeSet host_dirty_;
  RangeSet device_dirty_;
  // The ranges of `host_dirty_` that an upload failed to copy and that the host has not written
  // since that upload began. May contain ranges that are no longer dirty.
  RangeSet host_dirty_again_;
  InflightTransfers inflight_;
  UnifiedCounts counts_;
};

}  // namespace isthmus
