#pragma once
// A unified buffer: a host copy and a device copy of the same bytes, kept the same lazily.
//
// Two sets of ranges say all there is to say: what the device's copy is owed by the host, and what
// the host's is owed by the device. What the user wrote on the host is found when somebody looks
// (tracking/), what he had a device write he tells. A range is forgotten only when its copy has
// ended well: an upload under way takes it along, and gives it back if it fails. The same bytes in
// both sets are a conflict: nothing moves there until it is resolved. A write of the device counts
// as later than every upload of its bytes that was begun before its mark, however that ends:
// it conflicts with what the host wrote since.
//
// Invariants:
//  - No byte is copied from a side that never held it. Two more sets say what each copy has held
//    since it was made; `send` and `fetch` refuse what is not in them (INTERNAL).
//  - Every failed copy is reported: by the call that waits for it, by its event, or else once by
//    the next call that moves, marks or hands out bytes of the buffer. Queries do not report.
//  - What reads bytes of the device copy that an upload was to fill depends on that upload
//    (memory/content_list.hpp).
//
// Where the device reaches host memory at full speed one memory is both copies: the sets are kept
// all the same, but nothing moves, and as nothing can be lost the side that is told of last is the
// newer one.

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
  bool separate = false;  // two copies even where one would serve
  winner on_conflict = winner::none;
  tracking::granularity grain = tracking::granularity::automatic;
  std::optional<tracking::means> by;
  std::size_t element_bytes = 1;  // no element is told as written in part
};

struct unified_counts {
  std::uint64_t bytes_to_device = 0;
  std::uint64_t bytes_to_host = 0;
  std::uint64_t copies = 0;  // operations; of any number of ranges each
};

struct unified_facts {
  buffer_state state = buffer_state::uninitialized;
  // Bytes that a write is told by at most; 0 before there is a host copy.
  std::uint64_t granule = 0;
  tracking::means by = tracking::means::bytes;
  bool is_pinned = false;
  bool is_one_memory = false;
  std::size_t host_views = 0;
  unified_counts counts;
};

// Who waits till what moves has been read, or written where it is the host's copy: the call itself,
// its caller, by the event that he gets, or whoever uses the copy next.
enum class waiting : std::uint8_t { here, by_caller, nobody };

// Beside downloads that are on their way.
enum class before_arrival {
  nothing,
  fetch,  // begins those that would have to wait for work on the device
  work,   // waits for the work on the device copy and on the queue too
};

// What moves, and how.
struct sync_request {
  byte_range range;
  queue* on = nullptr;  // null: the buffer's own
  waiting who = waiting::here;
};

// Safe for threads: one of its functions at a time, but for `free` and writes through host views.
// In a forked child only what needs no driver works, on a copy of the child's own.
class unified_buffer final : public ref_counted {
 public:
  unified_buffer(queue& on, const unified_request& wanted, memory_resource* from);
  [[nodiscard]] static result<ref<unified_buffer>> create(queue& on, const unified_request& wanted,
                                                          memory_resource* from);

  [[nodiscard]] std::size_t nbytes() const noexcept { return wanted_.nbytes; }
  [[nodiscard]] byte_range all() const noexcept { return {0, wanted_.nbytes}; }
  [[nodiscard]] queue& on() const noexcept { return *on_; }
  // Both copies go; the host's memory when its last view has ended. Freeing twice does nothing.
  void free() noexcept;

  // True when it is given, and looks for writes first.
  [[nodiscard]] result<unified_facts> facts();
  [[nodiscard]] result<buffer_state> state();
  struct dirty {
    range_set host;    // written on the host: the device lacks them
    range_set device;  // the other way
  };
  [[nodiscard]] result<dirty> dirty_ranges();

  // The host copy, up to date in `range`; what is written there is found till `end_host_view`.
  [[nodiscard]] result<std::byte*> begin_host_view(const byte_range& range);
  void end_host_view() noexcept;
  // The same for reading alone, while the caller has a reference.
  [[nodiscard]] result<const std::byte*> read_host(const byte_range& range);
  // Bytes to be written, exactly these: nothing has to be found. `keeps`: with what is in them now.
  // Views show them after `end_host_write` at the latest. That ends the write in any case: where it
  // fails, the next call counts it.
  [[nodiscard]] result<std::byte*> begin_host_write(const byte_range& range, bool keeps);
  [[nodiscard]] result<void> end_host_write(const byte_range& range, bool kept);
  // The device copy, up to date in the range: all of it, with its operations on that queue.
  [[nodiscard]] result<ref<buffer>> device(const sync_request& wanted);
  // Likewise before a device writes exactly that range. Its end is `mark_device` of the same range,
  // which leaves failed copies to the next call; where it fails, the next call makes the mark.
  [[nodiscard]] result<ref<buffer>> begin_device_write(const sync_request& wanted);

  // The event is null where nothing is in flight. Errors: CONFLICT; those of allocation and of
  // copies, and then all that is owed still is.
  [[nodiscard]] submitted to_device(const sync_request& wanted);
  [[nodiscard]] submitted to_host(const sync_request& wanted);
  // The end of what a call on the range would wait for; null: of nothing but its own copy. A caller
  // who waits for it first does so outside the buffer's lock, and may stop. Errors as `to_host`; an
  // event of several operations does not fail.
  [[nodiscard]] submitted arrival(const sync_request& wanted, before_arrival mode);
  // All of them to their devices, found with one look and copied side by side.
  [[nodiscard]] static result<void> to_device(std::span<unified_buffer* const> each, queue* on);

  [[nodiscard]] result<void> mark_host(const byte_range& range);
  [[nodiscard]] result<void> mark_device(const byte_range& range);
  // Settles conflicts in the range: what the losing side has newer there counts no more. Bytes that
  // the winner's copy never held stay owed to it.
  [[nodiscard]] result<void> resolve(winner which, const byte_range& range);
  // Both copies count as the same, whatever they hold: for who writes all of it next. A device copy
  // without a host copy holds nothing from here until it is next given to a caller, or marked.
  [[nodiscard]] result<void> forget();

  // Releases the device copy where the host's is good, or it holds nothing, and nobody uses the
  // device's; the bytes.
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
    range_set written;  // the same, made when there was memory
    std::byte* at;      // what the writer was given
    bool kept = false;
    bool has_ended = false;  // and is to be counted by the next call
    bool is_published = false;
  };
  struct device_write {
    byte_range range;
    bool has_ended = false;
  };

  ~unified_buffer() override;
  // A forked child has no other thread, and the lock may be held by one of the parent's.
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
  // Without what is being written.
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
  // Counts what has landed, then reports a copy that failed and whose event nobody has asked.
  [[nodiscard]] result<void> settle();
  [[nodiscard]] result<void> land_all();
  [[nodiscard]] result<void> land_flights();
  [[nodiscard]] result<void> report_failed();
  [[nodiscard]] result<void> finish_uploads(const byte_range& range);
  void give_back_upload(const flight& failed);
  // Of a flight that has ended.
  [[nodiscard]] result<void> count(flight& done);
  [[nodiscard]] result<void> land(flight& done);
  // What the device had newer is in the host copy.
  void came_home(const range_set& ranges);
  // Waits for those of the range in one direction, and counts them.
  [[nodiscard]] result<void> land_those(const byte_range& range, bool to_device);
  [[nodiscard]] result<void> let_land(const byte_range& range);

  // uploading.cpp and downloading.cpp
  [[nodiscard]] submitted upload(const sync_request& wanted);
  [[nodiscard]] result<bool> goes_in_parts(const sync_request& wanted);
  [[nodiscard]] submitted upload_in_parts(queue& on);
  // A part of the host copy that was looked at: what is to go of it lies there, from its beginning.
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
  // Pre: settled, and looked at.
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
  std::atomic<std::size_t> views_{0};
  // Writes may have come since the last look through views that have ended.
  std::atomic<bool> unseen_{false};

  // Begun, and not counted yet: what lies there is the writer's, and is not found, sent or dropped.
  std::vector<exact_write> writing_;
  // The same of the device, no range twice: host writes beside what was begun with a host copy are
  // found by the smallest granules, and the device copy stays.
  std::vector<device_write> device_writes_;
  bool is_read_ = false;  // pointers were given for which nothing tells when they end

  // Shared with what is in flight on it.
  std::shared_ptr<tracking::tracked_memory> host_;
  ref<pin> pin_;
  ref<pin> library_pin_;  // of hashed memory, whose view has the other
  ref<buffer> device_;
  bool host_is_there_ = false;         // asked for, so that its bytes count
  bool device_is_there_ = false;       // the same
  bool device_holds_nothing_ = false;  // forgotten, and neither given nor marked since
  // What each copy has held since it was made: all of it where it was the first, else what was
  // copied to it or written there.
  range_set host_has_;
  range_set device_has_;
  // Copies that failed, which the next call reports, but for those whose event was waited for.
  std::vector<failed_copy> failed_;
  range_set found_;  // by looks, and not yet in the next
  range_set owed_device_;
  range_set owed_host_;
  // Of what the device is owed, what it is owed again since an upload failed: the host has not
  // written it since that upload began. May have some that is not owed any more.
  range_set owed_again_;
  flight_list flights_;
  unified_counts counts_;
};

}  // namespace isthmus
