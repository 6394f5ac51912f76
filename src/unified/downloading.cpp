// SPDX-License-Identifier: Apache-2.0
// Downloads: copies ranges that the device wrote to the host copy.

#include <iterator>

#include "os/process.hpp"
#include "unified/range_offsets.hpp"
#include "unified/unified_buffer.hpp"

namespace isthmus {

Submitted UnifiedBuffer::download(const SyncRequest& request) {
  ISTHMUS_TRY(complete_and_report());
  ISTHMUS_TRY(ensure_host());
  const bool is_first = !host_is_valid_;
  begin_host();
  if (!device_is_valid_) {
    return Ref<Event>{};
  }
  ISTHMUS_TRY(scan_host());
  return download_known(request, is_first);
}

// Downloads the ranges that are known to be dirty, without a scan for host writes. `is_first` is
// set if this call created the host copy.
Submitted UnifiedBuffer::download_known(const SyncRequest& request, bool is_first) {
  ISTHMUS_TRY(check_conflict(request.range));
  if (request.waiting == Waiting::this_call) {
    ISTHMUS_TRY(wait_for_downloads(request.range));
  }
  auto ranges = without_open_writes(device_dirty_.common({request.range}));
  if (!ranges.empty() && os::is_forked_child()) {
    return fail(ISTHMUS_ERROR_FORKED,
                "the host copy lacks {} of this range that the device wrote, and a forked child "
                "cannot copy them: update the host copy before the fork",
                describe_bytes(ranges.nbytes()));
  }
  for (const auto* download_in_flight : inflight_.overlapping(request.range, false)) {
    auto pending_ranges = download_in_flight->ranges;
    pending_ranges.remove(download_in_flight->outdated);
    ranges.remove(pending_ranges);
  }
  if (ranges.empty()) {
    return Ref<Event>{};
  }
  auto fetch_result = fetch(ranges, request);
  if (!fetch_result && is_first) {
    host_is_valid_ = false;
    device_dirty_.clear();
    host_held_.clear();
  }
  return fetch_result;
}

namespace {

// Adds to the error of a device loss which bytes the host copy lacks.
Error add_missing_ranges(const Error& failure, const RangeSet& ranges) {
  if (failure.code() != ISTHMUS_ERROR_DEVICE_LOST) {
    return failure;
  }
  return fail(ISTHMUS_ERROR_DEVICE_LOST,
              "{}: the host copy is complete except for {} that the device wrote in bytes {} to "
              "{}; those hold the last synchronized contents or part of the device's writes; call "
              "resolve() for the host to continue with them",
              failure.message(), describe_bytes(ranges.nbytes()), ranges.begin()->begin,
              std::prev(ranges.end())->end);
}

}  // namespace

Submitted UnifiedBuffer::fetch(const RangeSet& ranges, const SyncRequest& request) {
  auto entry = inflight_.make_entry(one_memory_ ? 0 : queue_for(request).serial(), false, ranges);
  if (one_memory_) {
    auto event = device_->pending();
    ISTHMUS_TRY(event);
    entry->event = *event;
    inflight_.add(std::move(entry));
    if (request.waiting == Waiting::this_call) {
      ISTHMUS_TRY(wait_for_downloads(request.range));
      return Ref<Event>{};
    }
    return *std::move(event);
  }
  if (!device_held_.covers(ranges)) {
    return fail(ISTHMUS_ERROR_INTERNAL,
                "a download includes bytes that the device copy never held");
  }
  auto list = same_offsets(ranges);
  auto source = device_->at(list.source_begin, list.source_bytes, false);
  ISTHMUS_TRY(source);
  Endpoint destination{host_->library() + list.destination_begin, nullptr, nullptr};
  TransferOptions options;
  options.blocking = request.waiting == Waiting::this_call;
  options.reads_contents = false;  // it reads bytes that the device wrote after any upload
  options.owners.push_back(owner_of(host_));
  // Downloads into a separate block in two cases: if a scan may use `library` during the copy, and
  // if a difference from `library` counts as a write. In the second case a partly failed download
  // would otherwise leave differences.
  if ((!options.blocking && !host_->is_one_memory()) ||
      host_->mechanism() == tracking::TrackingMechanism::bytes) {
    auto block = block_for(ranges);
    ISTHMUS_TRY(block);
    entry->block = *std::move(block);
    destination.pointer = entry->block.get();
    list = to_block(ranges);
    options.owners.push_back(owner_of(entry->block));
  }
  auto submitted =
      copy_ranges(&queue_for(request), destination, *source, std::move(list), std::move(options));
  if (!submitted) {
    return add_missing_ranges(submitted.failure(), ranges);
  }
  counts_.bytes_to_host += ranges.nbytes();
  counts_.copies += 1;
  if (*submitted) {
    entry->event = *submitted;
    inflight_.add(std::move(entry));
    return submitted;
  }
  if (entry->block) {
    scatter(host_->library(), ranges, entry->block.get(), ranges);
  }
  ISTHMUS_TRY(host_->publish(ranges, current_writers()));
  on_downloaded(ranges);
  return Ref<Event>{};
}

Submitted UnifiedBuffer::to_host(const SyncRequest& request) {
  const auto guard = enter();
  if (auto error = validate(request.range)) {
    return error;
  }
  return download(request);
}

}  // namespace isthmus
