// SPDX-License-Identifier: Apache-2.0
// Downloads: copies what the device wrote to the host copy.

#include <iterator>

#include "os/process.hpp"
#include "unified/places.hpp"
#include "unified/unified_buffer.hpp"

namespace isthmus {

Submitted UnifiedBuffer::download(const SyncRequest& wanted) {
  ISTHMUS_TRY(settle());
  ISTHMUS_TRY(need_host());
  const bool is_first = !host_is_there_;
  begin_host();
  if (!device_is_there_) {
    return Ref<Event>{};
  }
  ISTHMUS_TRY(look());
  return download_known(wanted, is_first);
}

// Downloads the ranges that are known to be dirty, without a scan for host writes. `is_first`: this
// call created the host copy.
Submitted UnifiedBuffer::download_known(const SyncRequest& wanted, bool is_first) {
  ISTHMUS_TRY(check_conflict(wanted.range));
  if (wanted.who == Waiting::here) {
    ISTHMUS_TRY(let_land(wanted.range));
  }
  auto ranges = settled(owed_host_.common({wanted.range}));
  if (!ranges.empty() && os::is_forked_child()) {
    return fail(ISTHMUS_ERROR_FORKED,
                "the host copy lacks {} of this range that the device wrote, and a forked child "
                "cannot copy them: update the host copy before the fork",
                describe_bytes(ranges.nbytes()));
  }
  for (const auto* each : flights_.of(wanted.range, false)) {
    auto coming = each->ranges;
    coming.remove(each->outdated);
    ranges.remove(coming);
  }
  if (ranges.empty()) {
    return Ref<Event>{};
  }
  auto got = fetch(ranges, wanted);
  if (!got && is_first) {
    host_is_there_ = false;
    owed_host_.clear();
    host_has_.clear();
  }
  return got;
}

namespace {

Error tell_what_is_missing(const Error& failure, const RangeSet& ranges) {
  if (failure.code() != ISTHMUS_ERROR_DEVICE_LOST) {
    return failure;
  }
  return fail(ISTHMUS_ERROR_DEVICE_LOST,
              "{}: the host copy is complete except for {} that the device wrote in bytes {} to "
              "{}; those hold the last synchronized contents, or a part of what the device wrote; "
              "call resolve() for the host to continue with them",
              failure.message(), describe_bytes(ranges.nbytes()), ranges.begin()->begin,
              std::prev(ranges.end())->end);
}

}  // namespace

Submitted UnifiedBuffer::fetch(const RangeSet& ranges, const SyncRequest& wanted) {
  auto made = flights_.make(one_memory_ ? 0 : chosen(wanted).serial(), false, ranges);
  if (one_memory_) {
    auto ended = device_->pending();
    ISTHMUS_TRY(ended);
    made->ended = *ended;
    flights_.add(std::move(made));
    if (wanted.who == Waiting::here) {
      ISTHMUS_TRY(let_land(wanted.range));
      return Ref<Event>{};
    }
    return *std::move(ended);
  }
  if (!device_has_.covers(ranges)) {
    return fail(ISTHMUS_ERROR_INTERNAL,
                "a download includes bytes that the device copy never held");
  }
  auto list = same_places(ranges);
  auto source = device_->at(list.source_begin, list.source_bytes, false);
  ISTHMUS_TRY(source);
  Endpoint destination{host_->library() + list.destination_begin, nullptr, nullptr};
  TransferOptions options;
  options.blocking = wanted.who == Waiting::here;
  options.reads_contents = false;  // it reads what the device wrote after any upload
  options.owners.push_back(owner_of(host_));
  // Copies through a block if a scan may need `library` meanwhile, and if a difference from
  // `library` counts as a write: a download that fails halfway must not leave differences.
  if ((!options.blocking && !host_->is_one_memory()) || host_->by() == tracking::Means::bytes) {
    auto block = block_for(ranges);
    ISTHMUS_TRY(block);
    made->block = *std::move(block);
    destination.pointer = made->block.get();
    list = into_one_block(ranges);
    options.owners.push_back(owner_of(made->block));
  }
  auto got =
      copy_ranges(&chosen(wanted), destination, *source, std::move(list), std::move(options));
  if (!got) {
    return tell_what_is_missing(got.failure(), ranges);
  }
  counts_.bytes_to_host += ranges.nbytes();
  counts_.copies += 1;
  if (*got) {
    made->ended = *got;
    flights_.add(std::move(made));
    return got;
  }
  if (made->block) {
    scatter(host_->library(), ranges, made->block.get(), ranges);
  }
  ISTHMUS_TRY(host_->publish(ranges, who_writes()));
  on_downloaded(ranges);
  return Ref<Event>{};
}

Submitted UnifiedBuffer::to_host(const SyncRequest& wanted) {
  const auto held = enter();
  if (auto bad = refuse(wanted.range)) {
    return bad;
  }
  return download(wanted);
}

}  // namespace isthmus
