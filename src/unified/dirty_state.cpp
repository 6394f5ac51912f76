// SPDX-License-Identifier: Apache-2.0
#include "unified/dirty_state.hpp"

#include <utility>

#include "core/expects.hpp"

namespace isthmus {

BufferState DirtyState::summary() const noexcept {
  if (!host_is_valid_) {
    return device_is_valid_ ? BufferState::device_only : BufferState::uninitialized;
  }
  if (!device_dirty_.empty()) {
    return BufferState::device_dirty;
  }
  if (!host_dirty_.empty()) {
    return BufferState::host_dirty;
  }
  return device_is_valid_ ? BufferState::synchronized : BufferState::host_only;
}

RangeSet DirtyState::conflict(const ByteRange& range) const {
  return host_dirty_.common(device_dirty_).common({range});
}

void DirtyState::begin_host() {
  if (host_is_valid_) {
    return;
  }
  RangeSet held;
  if (!device_is_valid_ || is_one_memory_) {
    held.add(all());
  }
  if (device_is_valid_) {
    device_dirty_ = {all()};
  }
  host_held_ = std::move(held);
  host_is_valid_ = true;
}

void DirtyState::begin_device() {
  if (device_is_valid_) {
    return;
  }
  if (host_is_valid_ && !is_one_memory_) {
    host_dirty_ = {all()};
    host_dirty_again_.clear();
    device_held_.clear();
  } else {
    device_held_ = {all()};
  }
  device_is_valid_ = true;
}

void DirtyState::cancel_host() noexcept {
  host_is_valid_ = false;
  device_dirty_.clear();
  host_held_.clear();
}

void DirtyState::end_device() noexcept {
  ISTHMUS_EXPECTS(device_dirty_.empty());
  host_dirty_.clear();
  host_dirty_again_.clear();
  device_held_.clear();
  device_is_valid_ = false;
}

RangeSet DirtyState::add_detected_writes(RangeSet written) {
  if (!host_held_.covers(written)) {
    written = written.common(host_held_);
  }
  return add_writes(std::move(written));
}

RangeSet DirtyState::add_host_writes(const RangeSet& written, bool replaces_device) {
  const auto held_change = host_held_.prepare_add(written);
  RangeSet losing_ranges;
  if (replaces_device) {
    make_host_dirty(written, written, written);
  } else {
    losing_ranges = add_writes(written);
  }
  host_held_.apply(held_change);
  return losing_ranges;
}

// With one memory it is unknown which side wrote bytes that both sides report; they count as
// written by the device.
RangeSet DirtyState::add_writes(RangeSet written) {
  if (written.empty()) {
    return {};
  }
  if (is_one_memory_) {
    auto dirty = written;
    dirty.remove(device_dirty_);
    make_host_dirty(written, dirty, {});
    return {};
  }
  if (on_conflict_ == Winner::none) {
    make_host_dirty(written, written, {});
    return {};
  }
  auto overlap = written.common(device_dirty_);
  if (on_conflict_ == Winner::host) {
    make_host_dirty(written, written, overlap);
    return {};
  }
  auto dirty = written;
  dirty.remove(overlap);
  make_host_dirty(written, dirty, {});
  return overlap;
}

// Of the bytes that the host wrote, `dirty` become dirty, and `replaced` are no longer dirty on the
// device. `replaced` changes last of those changes that may fail.
void DirtyState::make_host_dirty(const RangeSet& written, const RangeSet& dirty,
                                 const RangeSet& replaced) {
  const auto again_change = host_dirty_again_.prepare_remove(written);
  const auto dirty_change = host_dirty_.prepare_add(dirty);
  device_dirty_.remove(replaced);
  host_dirty_.apply(dirty_change);
  host_dirty_again_.apply(again_change);
}

// Host writes whose failed upload preceded the device write are no conflict: the device write
// replaces them.
RangeSet DirtyState::add_device_writes(RangeSet written) {
  const auto replaced_ranges = host_dirty_again_.common(written);
  auto overlap = host_dirty_.common(written);
  overlap.remove(replaced_ranges);
  const auto dirty_change = host_dirty_.prepare_remove(replaced_ranges);
  const auto again_change = host_dirty_again_.prepare_remove(replaced_ranges);
  if (on_conflict_ == Winner::host && !is_one_memory_ && !overlap.empty()) {
    auto device_dirty = device_dirty_;
    device_dirty.add(written);
    device_dirty.remove(overlap);
    device_dirty_ = std::move(device_dirty);
  } else {
    device_dirty_.add(written);
  }
  host_dirty_.apply(dirty_change);
  host_dirty_again_.apply(again_change);
  if (is_one_memory_) {
    return written;
  }
  if (on_conflict_ == Winner::device) {
    return overlap;
  }
  return {};
}

void DirtyState::resolve_for_host(const ByteRange& range) {
  const auto losing_ranges = device_dirty_.common({range}).common(host_held_);
  make_host_dirty(losing_ranges, losing_ranges, losing_ranges);
}

RangeSet DirtyState::losing_to_device(const ByteRange& range) const {
  return host_dirty_.common({range}).common(device_held_);
}

void DirtyState::resolve_for_device(const RangeSet& losing_ranges) {
  const auto dirty_change = device_dirty_.prepare_add(losing_ranges);
  host_dirty_.remove(losing_ranges);
  device_dirty_.apply(dirty_change);
}

DirtyState DirtyState::synchronized() const {
  DirtyState result{nbytes_, on_conflict_, is_one_memory_};
  result.host_is_valid_ = host_is_valid_;
  result.device_is_valid_ = device_is_valid_;
  result.host_held_ = host_is_valid_ ? RangeSet{all()} : host_held_;
  result.device_held_ = device_is_valid_ ? RangeSet{all()} : device_held_;
  return result;
}

DirtyState::Upload DirtyState::prepare_upload(const RangeSet& ranges) {
  return {host_dirty_.prepare_remove(ranges), device_held_.prepare_add(ranges)};
}

void DirtyState::restore_upload(const RangeSet& ranges) {
  auto not_written_since = ranges;
  not_written_since.remove(host_dirty_);
  const auto again_change = host_dirty_again_.prepare_add(not_written_since);
  host_dirty_.add(ranges);
  host_dirty_again_.apply(again_change);
}

// Changes both sets or neither: host writes are detected only in `host_held_`, so writes to bytes
// that are clean but not in `host_held_` would be missed.
void DirtyState::finish_download(const RangeSet& ranges) {
  const auto held_change = host_held_.prepare_add(ranges);
  device_dirty_.remove(ranges);
  host_held_.apply(held_change);
}

}  // namespace isthmus
