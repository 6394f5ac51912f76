// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which bytes of a unified buffer each copy holds, and which of them only one copy holds.
//
// Two sets of ranges describe the difference between the copies: dirty ranges of the host
// (`host_dirty`), which the device copy lacks, and dirty ranges of the device (`device_dirty`),
// which the host copy lacks. Bytes in both sets are a write conflict. A range becomes clean only
// when its copy has succeeded: an upload removes its ranges from the set when it is submitted and
// restores them if it fails.
//
// Two more sets (`host_held`, `device_held`) record what each copy has held since it was created:
// everything if it was the first copy, else the ranges that were copied to it or written in it.
// Transfers read nothing else.
//
// If one memory serves as both copies the sets are maintained as usual, but nothing is copied.
// Since no write can be lost, the side whose write was reported last counts as the newer one.
//
// Calls no driver and accesses no copy. Not thread-safe: the buffer's lock guards it. A function
// that throws std::bad_alloc has no effect.

#include <cstddef>

#include "core/range_set.hpp"
#include "unified/state.hpp"

namespace isthmus {

class DirtyState {
 public:
  DirtyState(std::size_t nbytes, Winner on_conflict, bool is_one_memory) noexcept
      : nbytes_{nbytes}, on_conflict_{on_conflict}, is_one_memory_{is_one_memory} {}

  // Whether the copy was requested, so that its contents count.
  [[nodiscard]] bool host_is_valid() const noexcept { return host_is_valid_; }
  [[nodiscard]] bool device_is_valid() const noexcept { return device_is_valid_; }
  [[nodiscard]] const RangeSet& host_dirty() const noexcept { return host_dirty_; }
  [[nodiscard]] const RangeSet& device_dirty() const noexcept { return device_dirty_; }
  [[nodiscard]] const RangeSet& host_held() const noexcept { return host_held_; }
  [[nodiscard]] const RangeSet& device_held() const noexcept { return device_held_; }
  [[nodiscard]] BufferState summary() const noexcept;
  [[nodiscard]] RangeSet conflict(const ByteRange& range) const;

  // The contents of the copy count from now on. If the other copy is valid this one lacks all of
  // it. No effect on a valid copy.
  void begin_host();
  void begin_device();
  // Reverts `begin_host`. Nothing was downloaded or written on the host since.
  void cancel_host() noexcept;
  // The device copy is released. The host lacks nothing of it.
  void end_device() noexcept;

  // Host writes that a scan has detected. Writes are detected in granules: bytes that the host copy
  // never held cannot have been written and are ignored. Returns the ranges whose host writes the
  // winner's device writes replace; the caller discards them.
  [[nodiscard]] RangeSet add_detected_writes(RangeSet written);
  // Host writes of exactly these bytes. With `replaces_device` they replace earlier device writes,
  // otherwise these are conflicts. Returns the same as `add_detected_writes`.
  [[nodiscard]] RangeSet add_host_writes(const RangeSet& written, bool replaces_device);
  // Device writes, which count as later than every upload that began before. Returns the ranges
  // whose host writes they replace; the caller discards them.
  [[nodiscard]] RangeSet add_device_writes(RangeSet written);
  // The bytes count as synchronized, since the device's bytes will replace them.
  void discard_host_writes(const RangeSet& ranges) { host_dirty_.remove(ranges); }

  // Discards the device's writes in the range, as far as the host copy holds the bytes.
  void resolve_for_host(const ByteRange& range);
  // Returns the ranges whose host writes lose if the device wins in `range`: those that the device
  // copy holds. `resolve_for_device` makes them dirty on the device instead.
  [[nodiscard]] RangeSet losing_to_device(const ByteRange& range) const;
  void resolve_for_device(const RangeSet& losing_ranges);
  // Returns this state with both valid copies complete and nothing dirty.
  [[nodiscard]] DirtyState synchronized() const;

  // An upload allocates what it changes before it is submitted. The state must not change before
  // the change is applied.
  struct Upload {
    RangeSet::Change dirty;
    RangeSet::Change held;
  };
  [[nodiscard]] Upload prepare_upload(const RangeSet& ranges);
  // The upload was submitted, so its ranges are no longer dirty.
  void submit_upload(const Upload& upload) noexcept { host_dirty_.apply(upload.dirty); }
  // The upload has succeeded within the call that submitted it.
  void finish_upload(const Upload& upload) noexcept { device_held_.apply(upload.held); }
  // The device copy holds these bytes, by an upload that has succeeded or by a device write.
  void add_device_held(const RangeSet& ranges) { device_held_.add(ranges); }
  // An upload of these ranges, which nothing has replaced since, has failed.
  void restore_upload(const RangeSet& ranges);
  // The host copy has received these bytes of the device.
  void finish_download(const RangeSet& ranges);

 private:
  [[nodiscard]] ByteRange all() const noexcept { return {0, nbytes_}; }
  [[nodiscard]] RangeSet add_writes(RangeSet written);
  void make_host_dirty(const RangeSet& written, const RangeSet& dirty, const RangeSet& replaced);

  std::size_t nbytes_;
  Winner on_conflict_;
  bool is_one_memory_;
  bool host_is_valid_ = false;
  bool device_is_valid_ = false;
  RangeSet host_dirty_;
  RangeSet device_dirty_;
  // The ranges of `host_dirty_` that an upload failed to copy and that the host has not written
  // since that upload began. May contain ranges that are no longer dirty.
  RangeSet host_dirty_again_;
  RangeSet host_held_;
  RangeSet device_held_;
};

}  // namespace isthmus
