// SPDX-License-Identifier: Apache-2.0
#pragma once
// A unified buffer: a host copy and a device copy of the same bytes, synchronized lazily.
//
// Two sets of ranges describe the difference: dirty ranges of the host (`owed_device_`), which the
// device copy lacks, and dirty ranges of the device (`owed_host_`), which the host copy lacks. Host
// writes are found when the state is needed (tracking/); the program reports device writes. A range
// becomes clean only when its copy has succeeded: an upload in flight takes its ranges out of the
// set and puts them back if it fails. Bytes in both sets are a write conflict: they are not copied
// until it is resolved. A device write counts as later than every upload of its bytes that began
// before it was marked, whatever the outcome of the upload; it conflicts with host writes made
// since.
//
// Invariants:
//  - No byte is copied from a side that never held it. Two more sets (`host_has_`, `device_has_`)
//    record what each copy has held since it was created; `send` and `fetch` refuse anything else
//    (INTERNAL).
//  - Every failed copy is reported: by the call that waits for it, by its event, or else once by
//    the next call that moves, marks or returns bytes of the buffer. Queries do not report.
//  - An operation that reads bytes of the device copy which an upload was to fill depends on that
//    upload (memory/content_list.hpp).
//
// Where the device accesses host memory at full speed, one memory serves as both copies. The sets
// are kept as usual but nothing is copied. As no write can be lost, the side whose write was
// reported last counts as the newer one.

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "buffer/buffer.hpp"
#include "core/range_set.hpp"
#include "memory/pins.hpp"
#include "tracking/tracked_memory.hpp"
#include "transfer/transfer.hpp"
#include "unified/flight_list.hpp"
#include "unified/state.hpp"

namespace isthmus {

struct unified_request {
  std::size_t nbytes = 0;
  bool pinned = false;    // the host copy is registered with the driver
  bool separate = false;  // two copies even where one memory would suffice
  winner on_conflict = winner::none;
  tracking::granularity grain = tracking::granularity::automatic;
  std::optional<tracking::means> by;
  std::size_t element_bytes = 1;  // found writes are extended to whole elements
};

struct unified_counts {
  std::uint64_t bytes_to_device = 0;
  std::uint64_t bytes_to_host = 0;
  std::uint64_t copies = 0;  // operations; of any number of ranges each
};

struct unified_facts {
  buffer_state state = buffer_state::uninitialized;
  // Largest number of bytes reported for a write of one byte; 0 before there is a host copy.
  std::uint64_t granule = 0;
  tracking::means by = tracking::means::bytes;
  bool is_pinned = false;
  bool is_one_memory = false;
  std::size_t host_views = 0;
  unified_counts counts;
};

// Who waits until a transfer has read its source, or has written the host copy: the call itself;
// its caller, by the event; or the next use of the copy.
enum class waiting : std::uint8_t { here, by_caller, nobody };

// What `arrival` does besides waiting for downloads in flight.
enum class before_arrival {
  nothing,
  fetch,  // begins downloads that would have to wait for work on the device
  work,   // also waits for the work on the device copy and on the queue
};

struct sync_request {
  byte_range range;
  queue* on = nullptr;  // null: the buffer's own queue
  waiting who = waiting::here;
};

// Thread-safe: calls are serialized by a lock, which writes through host views and `end_host_view`
// do not need. The lock is recursive, since calls may run callbacks of the program that use the
// buffer or free it. In a forked child only calls that need no driver work, on a private copy.
class unified_buffer final : public ref_counted {
 public:
  unified_buffer(queue& on, const unified_request& wanted, memory_resource* from);
  [[nodiscard]] static result<ref<unified_buffer>> create(queue& on, const unified_request& wanted,
                                                          memory_resource* from);

  [[nodiscard]] std::size_t nbytes() const noexcept { return wanted_.nbytes; }
  [[nodiscard]] byte_range all() const noexcept { return {0, wanted_.nbytes}; }
  [[nodiscard]] queue& on() const noexcept { return *on_; }
  // Releases both copies; the host copy once its last view has ended. Freeing twice does nothing.
  void free() noexcept;

  // The queries are exact when they return: they scan for host writes first.
  [[nodiscard]] result<unified_facts> facts();
  [[nodiscard]] result<buffer_state> state();
  struct dirty {
    range_set host;    // written on the host; the device lacks them
    range_set device;  // written on the device; the host lacks them
  };
  [[nodiscard]] result<dirty> dirty_ranges();

  // The host copy, current in `range`. Writes to it are found until `end_host_view`.
  [[nodiscard]] result<std::byte*> begin_host_view(const byte_range& range);
  void end_host_view() noexcept;
  // The same for reading only, valid while the caller has a reference.
  [[nodiscard]] result<const std::byte*> read_host(const byte_range& range);
  // Memory for a host write of exactly this range, which needs no dirty tracking. `keeps`: with the
  // present contents. Views show the bytes after `end_host_write` at the latest. That ends the
  // write in any case: if it fails, the next call counts the write.
  [[nodiscard]] result<std::byte*> begin_host_write(const byte_range& range, bool keeps);
  [[nodiscard]] result<void> end_host_write(const byte_range& range, bool kept);
  // The complete device copy, current in the range, with its operations on that queue.
  [[nodiscard]] result<ref<buffer>> device(const sync_request& wanted);
  // The same before a device writes exactly that range. `mark_device` of the same range ends the
  // write and leaves failed copies to the next call. If it fails, the next call makes the mark.
  [[nodiscard]] result<ref<buffer>> begin_device_write(const sync_request& wanted);

  // The event is null if nothing is in flight. Errors: CONFLICT, and those of allocation and
  // copies, after which all dirty ranges are still dirty.
  [[nodiscard]] submitted to_device(const sync_request& wanted);
  [[nodiscard]] submitted to_host(const sync_request& wanted);
  // The end of what a call on the range would wait for, apart from its own copy; null if there is
  // nothing. A caller who waits for it first does so outside the buffer's lock, and can stop
  // waiting. Errors as `to_host`; an event of several operations does not fail.
  [[nodiscard]] submitted arrival(const sync_request& wanted, before_arrival mode);
  // Uploads many buffers, with one scan for host writes and concurrent copies.
  [[nodiscard]] static result<void> to_device(std::span<unified_buffer* const> each, queue* on);

  [[nodiscard]] result<void> mark_host(const byte_range& range);
  [[nodiscard]] result<void> mark_device(const byte_range& range);
  // Resolves conflicts in the range: the losing side's dirty bytes are dropped. Bytes that the
  // winner's copy never held stay dirty on the other side.
  [[nodiscard]] result<void> resolve(winner which, const byte_range& range);
  // Makes both copies count as synchronized whatever they hold, for a caller that overwrites
  // everything next. A device copy without a host copy then holds nothing until it is returned to a
  // caller or marked.
  [[nodiscard]] result<void> forget();

  // Releases the device copy if it is unused, and the host copy is current or the device copy holds
  // nothing. Returns the bytes released.
  [[nodiscard]] std::uint64_t give_up_device();
  [[nodiscard]] bool is_on(const isthmus::device& where) const noexcept;

 private:
  friend class unified_list;
  using lock = std::unique_lock<std::recursive_mutex>;
  struct failed_copy {
    ref<event> ended;
    bool to_device;
  };
  struct exact_write {
    byte_range range;
    range_set written;  // the same, allocated at the beginning of the write
    std::byte* at;      // the address that the writer received
    bool kept = false;
    bool has_ended = false;  // to be counted by the next call
    bool is_published = false;
  };
  struct device_write {
    byte_range range;
    bool has_ended = false;
  };

  ~unified_buffer() override;
  // Takes no lock in a forked child: it has no other thread, and a thread of the parent may have
  // held the lock.
  [[nodiscard]] lock enter();
  [[nodiscard]] error refuse(const byte_range& range) const;
  [[nodiscard]] result<const std::byte*> updated_host(const byte_range& range);
  void let_host_go() noexcept;
  [[nodiscard]] result<void> need_host();
  [[nodiscard]] result<void> need_pin();
  void need_library_pin();
  void end_pins() noexcept;
  [[nodiscard]] result<void> need_device();
  [[nodiscard]] result<ref<buffer>> device_of_host();

  // ended_writes.cpp
  [[nodiscard]] bool has_uncounted() const noexcept;
  [[nodiscard]] std::vector<device_write>::iterator open_device_write(
      const byte_range& range) noexcept;
  [[nodiscard]] result<void> publish(exact_write& ended);
  [[nodiscard]] result<void> count_host_write(exact_write& ended);
  [[nodiscard]] result<void> count_ended_writes();
  [[nodiscard]] range_set written_by_device() const;

  // conflicts.cpp
  [[nodiscard]] bool must_look() const noexcept;
  // Without ranges that are being written.
  [[nodiscard]] range_set settled(range_set ranges) const;
  [[nodiscard]] range_set in_elements(const range_set& ranges) const;
  [[nodiscard]] tracking::writers who_writes() const noexcept;
  [[nodiscard]] result<void> look();
  [[nodiscard]] result<void> take_in_found();
  [[nodiscard]] result<void> take_in(range_set written);
  [[nodiscard]] result<void> check_conflict(const byte_range& range) const;
  [[nodiscard]] range_set conflict() const { return owed_device_.common(owed_host_); }
  [[nodiscard]] result<void> drop_host_writes(const range_set& which);
  void note_device_wrote(const range_set& ranges);
  [[nodiscard]] result<void> count_device_write(const byte_range& range);
  [[nodiscard]] buffer_state state_now() const noexcept;

  // landing.cpp
  // Counts completed transfers, then reports failed copies whose failure no caller has seen through
  // their events.
  [[nodiscard]] result<void> settle();
  [[nodiscard]] result<void> land_all();
  [[nodiscard]] result<void> land_flights();
  [[nodiscard]] result<void> report_failed();
  [[nodiscard]] result<void> finish_uploads(const byte_range& range);
  void give_back_upload(const flight& failed);
  // Pre: the transfer has completed.
  [[nodiscard]] result<void> count(flight& done);
  [[nodiscard]] result<void> land(flight& done);
  // The host copy now has these bytes of the device.
  void came_home(const range_set& ranges);
  // Waits for the transfers of the range in one direction, and counts them.
  [[nodiscard]] result<void> land_those(const byte_range& range, bool to_device);
  [[nodiscard]] result<void> let_land(const byte_range& range);

  // uploading.cpp and downloading.cpp
  [[nodiscard]] submitted upload(const sync_request& wanted);
  [[nodiscard]] result<bool> goes_in_parts(const sync_request& wanted);
  [[nodiscard]] submitted upload_in_parts(queue& on);
  // A scanned sub-range of the host copy. Its dirty bytes are at `from`, at their offsets in the
  // buffer.
  struct part_of_host {
    byte_range range;
    const std::byte* from;
    tracking::writers who;
  };
  [[nodiscard]] result<void> upload_part(const part_of_host& part, queue& on,
                                         std::vector<ref<event>>& sent);
  void begin_device();
  void begin_host();
  [[nodiscard]] static result<void> end_all(std::span<const ref<event>> sent);
  // Pre: settled, and scanned for host writes.
  [[nodiscard]] submitted upload_known(const sync_request& wanted);
  [[nodiscard]] static result<void> upload_all(std::span<unified_buffer* const> each, queue* on);
  [[nodiscard]] submitted download(const sync_request& wanted);
  [[nodiscard]] submitted download_known(const sync_request& wanted, bool is_first);
  [[nodiscard]] result<bool> would_wait(const sync_request& wanted);
  [[nodiscard]] submitted send(const range_set& ranges, const sync_request& wanted);
  [[nodiscard]] submitted put_on_its_way(const range_set& ranges, const std::byte* from,
                                         bool is_direct, transfer_options options, queue& on);
  [[nodiscard]] submitted fetch(const range_set& ranges, const sync_request& wanted);
  [[nodiscard]] byte_range whole_chunks(const byte_range& range) const noexcept;
  [[nodiscard]] result<void> stand_behind_uploads(queue& on, const byte_range& range) const;
  [[nodiscard]] queue& chosen(const sync_request& wanted) const noexcept {
    return wanted.on != nullptr ? *wanted.on : *on_;
  }

  ref<queue> on_;
  const unified_request wanted_;
  ref<memory_resource> from_;
  const bool one_memory_;
  std::recursive_mutex lock_;
  std::atomic<bool> dead_{false};
  // Views begin under the lock and end without it. A view that ends sets `unseen_` and then
  // decrements `views_` (release), so a thread that holds the lock, loads `views_` as 0 (acquire)
  // and then `unseen_` as false knows that no view has written since the last scan.
  std::atomic<std::size_t> views_{0};
  std::atomic<bool> unseen_{false};

  // Exact host writes that have begun and are not counted yet. Their bytes belong to the writer:
  // they are not scanned for writes, sent or dropped.
  std::vector<exact_write> writing_;
  // The same for device writes; no range occurs twice among the open ones. While a write is open
  // the device copy is not released, and if there was a host copy when it began, host writes next
  // to its range are found in the smallest granules.
  std::vector<device_write> device_writes_;
  bool is_read_ = false;  // pointers were returned whose last use is unknown

  // Shared with transfers in flight.
  std::shared_ptr<tracking::tracked_memory> host_;
  ref<pin> pin_;
  ref<pin> library_pin_;  // of hashed memory, whose view has `pin_`
  ref<buffer> device_;
  bool host_is_there_ = false;         // requested, so its contents count
  bool device_is_there_ = false;       // the same
  bool device_holds_nothing_ = false;  // forgotten, and neither returned nor marked since
  // What each copy has held since it was created: everything if it was the first, else what was
  // copied to it or written there.
  range_set host_has_;
  range_set device_has_;
  // Failed copies that the next call reports, unless a caller has seen the failure through the
  // event.
  std::vector<failed_copy> failed_;
  range_set found_;  // by scans, not counted yet
  range_set owed_device_;
  range_set owed_host_;
  // The part of `owed_device_` that became dirty again because an upload failed and that the host
  // has not written since that upload began. May contain ranges that are no longer dirty.
  range_set owed_again_;
  flight_list flights_;
  unified_counts counts_;
};

}  // namespace isthmus
