// SPDX-License-Identifier: Apache-2.0
// Counts transfers that have completed, and reports those that failed.

#include "os/process.hpp"
#include "unified/places.hpp"
#include "unified/unified_buffer.hpp"

namespace isthmus {
namespace {

// The error for a copy whose failure a later call reports.
Error describe_failed(const Event& ended, bool to_device) {
  return fail(ended.outcome().code(),
              "a copy of this unified buffer to the {} failed after the call that started it had "
              "returned: {}; the next call that needs the bytes copies them again",
              to_device ? "device" : "host", ended.outcome().message());
}

}  // namespace

Result<void> UnifiedBuffer::settle() {
  ISTHMUS_TRY(land_all());
  return report_failed();
}

// Reports all failed copies as one error. A caller may already have seen a failure through the
// copy's event.
Result<void> UnifiedBuffer::report_failed() {
  std::erase_if(failed_, [](const FailedCopy& each) { return each.ended->reported(); });
  if (failed_.empty()) {
    return {};
  }
  const auto all = std::exchange(failed_, {});
  const auto cause = describe_failed(*all.front().ended, all.front().to_device);
  return fail(
      cause.code(), "{}{}", cause.message(),
      all.size() == 1 ? "" : fmt::format(" (and so did {} more copies of it)", all.size() - 1));
}

Result<void> UnifiedBuffer::land_all() {
  if (os::is_forked_child()) {
    return {};
  }
  ISTHMUS_TRY(land_flights());
  return count_ended_writes();
}

// Before a download counts as completed, the host copy is scanned for writes made meanwhile. A
// transfer that cannot be counted now stays in the list.
Result<void> UnifiedBuffer::land_flights() {
  for (auto each = flights_.begin(); each != flights_.end();) {
    if (each->second.ended->pending()) {
      each = flights_.next_after(each);
      continue;
    }
    ISTHMUS_TRY(land(each->second));
    each = flights_.erase(each);
  }
  return {};
}

Result<void> UnifiedBuffer::land(InflightTransfer& done) {
  if (failed_.size() == failed_.capacity()) {
    failed_.reserve(2 * failed_.size() + 1);
  }
  ISTHMUS_TRY(count(done));
  if (!done.ended->succeeded() && !done.is_forgotten) {
    failed_.push_back({done.ended, done.to_device});
  }
  return {};
}

// Makes the ranges of a failed upload dirty again, except those that a later device write or a
// later upload has replaced: the former would be a false conflict.
void UnifiedBuffer::give_back_upload(const InflightTransfer& failed) {
  auto back = failed.ranges;
  back.remove(failed.outdated);
  for (const auto* other : flights_.of(failed.span(), true)) {
    if (failed.is_before(*other)) {
      back.remove(other->ranges);
    }
  }
  auto not_written_since = back;
  not_written_since.remove(owed_device_);
  owed_again_.add(not_written_since);
  owed_device_.add(back);
}

// The ranges of a failed download stay dirty.
Result<void> UnifiedBuffer::count(InflightTransfer& done) {
  const bool went_well = done.ended->poll() == ISTHMUS_OK;
  if (done.to_device) {
    for (auto* other : flights_.of(done.span(), true)) {
      if (other->is_before(done)) {
        other->outdated.add(done.ranges);
      }
    }
    went_well ? device_has_.add(done.ranges) : give_back_upload(done);
    return {};
  }
  if (!went_well) {
    return {};
  }
  ISTHMUS_TRY(look());
  // Excludes what the device wrote since, and what host writers hold or have written meanwhile.
  auto good = settled(done.ranges.common(owed_host_));
  good.remove(done.outdated);
  good.remove(owed_device_);
  if (done.block) {
    scatter(host_->library(), done.ranges, done.block.get(), good);
  }
  if (one_memory_) {
    ISTHMUS_TRY(host_->snapshot(good, tracking::Writers::some));
  } else {
    ISTHMUS_TRY(host_->publish(good, who_writes()));
  }
  on_downloaded(good);
  return {};
}

// Changes both sets or neither: host writes are found only in `host_has_`, so writes to bytes that
// were synchronized but not in it would be missed.
void UnifiedBuffer::on_downloaded(const RangeSet& ranges) {
  const auto arriving = host_has_.adding(ranges);
  owed_host_.remove(ranges);
  host_has_.apply(arriving);
  if (device_writes_.empty()) {
    host_->coarsen(owed_host_);
  } else {
    host_->coarsen(written_by_device());
  }
}

Result<void> UnifiedBuffer::finish_uploads(const ByteRange& range) {
  ISTHMUS_TRY(land_those(range, true));
  return settle();
}

Result<void> UnifiedBuffer::land_those(const ByteRange& range, bool to_device) {
  if (flights_.empty() || os::is_forked_child()) {
    return {};
  }
  for (auto* each : flights_.of(range, to_device)) {
    let_end(std::span{&each->ended, 1});
    ISTHMUS_TRY(land(*each));
    flights_.erase(*each);
  }
  return {};
}

Result<void> UnifiedBuffer::let_land(const ByteRange& range) {
  ISTHMUS_TRY(land_those(range, false));
  return settle();
}

}  // namespace isthmus
