// SPDX-License-Identifier: Apache-2.0
// Finds what each side wrote, and where both did.

#include <iterator>

#include "core/undo.hpp"
#include "os/process.hpp"
#include "transfer/ordering.hpp"
#include "unified/unified_buffer.hpp"

namespace isthmus {
namespace {

constexpr std::size_t k_most_named = 4;

// "0 to 4096, 8192 to 12288 and 3 more"
std::string name_ranges(const RangeSet& ranges) {
  std::string text;
  std::size_t named = 0;
  for (const auto& each : ranges) {
    if (named++ == k_most_named) {
      break;
    }
    fmt::format_to(std::back_inserter(text), "{}{} to {}", text.empty() ? "" : ", ", each.begin,
                   each.end);
  }
  if (ranges.size() > k_most_named) {
    fmt::format_to(std::back_inserter(text), " and {} more", ranges.size() - k_most_named);
  }
  return text;
}

}  // namespace

bool UnifiedBuffer::must_look() const noexcept {
  return host_ && host_is_there_ && who_writes() != tracking::Writers::none;
}

RangeSet UnifiedBuffer::settled(RangeSet ranges) const {
  for (const auto& each : writing_) {
    ranges.remove(each.written);
  }
  return ranges;
}

// Views begin under the lock, so a thread that holds it and sees no view has exclusive access.
// `views_` is loaded first: a view that ends between the loads is then seen in one of the two.
tracking::Writers UnifiedBuffer::who_writes() const noexcept {
  const bool none =
      views_.load(std::memory_order_acquire) == 0 && !unseen_.load(std::memory_order_acquire);
  return none ? tracking::Writers::none : tracking::Writers::some;
}

// A view that ends during the scan leaves `unseen_` set for the next one.
Result<void> UnifiedBuffer::look() {
  if (!must_look() || os::is_forked_child()) {
    return {};
  }
  unseen_.store(false, std::memory_order_seq_cst);
  Undo not_seen{[this] { unseen_.store(true, std::memory_order_seq_cst); }};
  host_->take(found_);
  ISTHMUS_TRY(take_in_found());
  not_seen.dismiss();
  return {};
}

// Extends ranges to whole elements. Larger granules (pages, chunks) are used as they are.
RangeSet UnifiedBuffer::in_elements(const RangeSet& ranges) const {
  const auto item = wanted_.element_bytes;
  if (item == 1 || ranges.empty() || host_->by() != tracking::Means::bytes) {
    return ranges;
  }
  RangeSet whole;
  for (const auto& each : ranges) {
    const auto end = (each.end + item - 1) / item * item;
    whole.add(ByteRange{each.begin / item * item, std::min(end, wanted_.nbytes)});
  }
  return whole;
}

// The kernel reports a write once, so it stays in `found_` until it is counted.
Result<void> UnifiedBuffer::take_in_found() {
  ISTHMUS_TRY(take_in(settled(in_elements(found_))));
  found_.clear();
  return {};
}

// Writes are found in granules. The host cannot have written the bytes of a granule that its copy
// never held.
Result<void> UnifiedBuffer::take_in(RangeSet written) {
  if (!host_has_.covers(written)) {
    written = written.common(host_has_);
  }
  if (written.empty()) {
    return {};
  }
  owed_again_.remove(written);
  RangeSet both;
  if (one_memory_) {
    written.remove(owed_host_);  // the device may have written these: one memory cannot distinguish
  } else if (wanted_.on_conflict != Winner::none) {
    both = written.common(owed_host_);
  }
  if (wanted_.on_conflict == Winner::device) {
    written.remove(both);
    owed_device_.add(written);
    return drop_host_writes(both);
  }
  const auto owed = owed_device_.adding(written);
  owed_host_.remove(both);
  owed_device_.apply(owed);
  return {};
}

// These writes count as synchronized from here on, since the device's bytes will replace them.
Result<void> UnifiedBuffer::drop_host_writes(const RangeSet& which) {
  if (which.empty()) {
    return {};
  }
  ISTHMUS_TRY(host_->snapshot(settled(which), tracking::Writers::some));
  owed_device_.remove(which);
  return {};
}

Result<void> UnifiedBuffer::check_conflict(const ByteRange& range) const {
  if (owed_host_.empty() || owed_device_.empty()) {
    return {};
  }
  const auto both = conflict().common({range});
  if (both.empty()) {
    return {};
  }
  return fail(ISTHMUS_ERROR_CONFLICT,
              "host and device both wrote bytes {} of a unified buffer: call resolve() for the "
              "host or the device, create the buffer with a winner, or keep the two from writing "
              "the same bytes ({} bytes, detected in granules of {} bytes)",
              name_ranges(both), both.nbytes(), host_ ? host_->granule() : 1);
}

BufferState UnifiedBuffer::state_now() const noexcept {
  if (!host_is_there_) {
    return device_is_there_ ? BufferState::device_only : BufferState::uninitialized;
  }
  if (!owed_host_.empty()) {
    return BufferState::device_dirty;
  }
  if (!owed_device_.empty()) {
    return BufferState::host_dirty;
  }
  return device_is_there_ ? BufferState::synchronized : BufferState::host_only;
}

Result<void> UnifiedBuffer::mark_host(const ByteRange& range) {
  const auto held = enter();
  if (auto bad = refuse(range)) {
    return bad;
  }
  if (!host_is_there_) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "the host copy does not exist yet, so it cannot have been written");
  }
  ISTHMUS_TRY(land_all());
  ISTHMUS_TRY(look());
  if (one_memory_) {
    owed_host_.remove({range});
  }
  host_has_.add(range);
  ISTHMUS_TRY(take_in({range}));
  return report_failed();  // the mark is made all the same
}

// The device wrote these bytes, so they no longer depend on the outcome of earlier copies to them.
void UnifiedBuffer::note_device_wrote(const RangeSet& ranges) {
  for (const auto& each : ranges) {
    if (auto place = device_->at(each.begin, each.nbytes(), false)) {
      note_overwritten(*place, each.nbytes(), {});
    }
  }
}

Result<void> UnifiedBuffer::mark_device(const ByteRange& range) {
  const auto held = enter();
  if (auto bad = refuse(range)) {
    return bad;
  }
  if (!device_is_there_) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "the device copy does not exist yet, so it cannot have been written");
  }
  device_holds_nothing_ = false;
  if (const auto begun = open_device_write(range); begun != device_writes_.end()) {
    begun->has_ended = true;
    return land_all();  // the next call reports a failed copy
  }
  ISTHMUS_TRY(land_all());
  ISTHMUS_TRY(count_device_write(range));
  return report_failed();  // the mark is made all the same
}

// Pre: completed transfers are counted.
Result<void> UnifiedBuffer::count_device_write(const ByteRange& range) {
  if (!host_is_there_) {
    return {};  // the device copy is the only one
  }
  ISTHMUS_TRY(look());
  const RangeSet told{range};
  for (const bool to_device : {false, true}) {
    for (auto* each : flights_.of(range, to_device)) {
      each->outdated.add(range);
    }
  }
  device_has_.add(told);
  note_device_wrote(told);
  const auto replaced = owed_again_.common(told);  // as if the upload were still in flight
  auto both = owed_device_.common(told);
  both.remove(replaced);
  owed_host_.add(told);
  owed_device_.remove(replaced);
  owed_again_.remove(replaced);
  if (one_memory_ || wanted_.on_conflict == Winner::device) {
    ISTHMUS_TRY(drop_host_writes(one_memory_ ? told : both));
  } else if (wanted_.on_conflict == Winner::host) {
    owed_host_.remove(both);
  }
  return {};
}

Result<void> UnifiedBuffer::resolve(Winner which, const ByteRange& range) {
  const auto held = enter();
  if (auto bad = refuse(range)) {
    return bad;
  }
  if (which != Winner::host && which != Winner::device) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "a conflict can be resolved only for the host or the device");
  }
  ISTHMUS_TRY(let_land(range));  // a download in flight would overwrite the winner's bytes
  if (which == Winner::device) {
    ISTHMUS_TRY(finish_uploads(range));  // afterwards the device has their bytes, or never had them
  }
  ISTHMUS_TRY(look());
  if (which == Winner::host) {
    const auto lost = owed_host_.common({range}).common(host_has_);
    owed_again_.remove(lost);
    const auto won = owed_device_.adding(lost);
    owed_host_.remove(lost);
    owed_device_.apply(won);
    return {};
  }
  const auto lost = owed_device_.common({range}).common(device_has_);
  const auto won = owed_host_.adding(lost);
  ISTHMUS_TRY(drop_host_writes(lost));
  owed_host_.apply(won);
  note_device_wrote(lost);
  if (!host_is_there_ || !device_is_there_) {
    ISTHMUS_TRY(download({range, nullptr, Waiting::here}));
    return {};
  }
  // No second scan: it would find dropped writes again if they cover only part of a hashed granule.
  ISTHMUS_TRY(download_known({range, nullptr, Waiting::here}, false));
  return {};
}

Result<void> UnifiedBuffer::forget() {
  const auto held = enter();
  if (auto bad = refuse(all())) {
    return bad;
  }
  ISTHMUS_TRY(land_those(all(), false));
  ISTHMUS_TRY(land_all());  // failures of these copies are reported by their own events alone
  ISTHMUS_TRY(look());
  // Everything that needs memory comes before anything changes.
  if (host_ && !owed_device_.empty()) {
    ISTHMUS_TRY(host_->snapshot(settled(owed_device_), tracking::Writers::some));
  }
  auto host_has = host_is_there_ ? RangeSet{all()} : host_has_;
  auto device_has = device_is_there_ ? RangeSet{all()} : device_has_;
  std::vector<RangeSet> outdated(flights_.size(), RangeSet{all()});
  if (device_is_there_) {
    note_device_wrote({all()});
  }
  owed_device_.clear();
  owed_again_.clear();
  owed_host_.clear();
  host_has_ = std::move(host_has);
  device_has_ = std::move(device_has);
  device_holds_nothing_ = true;
  device_writes_.clear();
  failed_.clear();
  for (auto& [name, each] : flights_) {
    each.outdated = std::move(outdated.back());
    outdated.pop_back();
    each.is_forgotten = true;
  }
  return {};
}

}  // namespace isthmus
