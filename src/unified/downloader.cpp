// SPDX-License-Identifier: Apache-2.0
#include "unified/downloader.hpp"

#include <utility>

#include "core/sizes.hpp"
#include "os/process.hpp"
#include "transfer/ranges.hpp"
#include "unified/conflict.hpp"
#include "unified/range_offsets.hpp"

namespace isthmus {
namespace {

// A download of at most this size is short enough to wait for under the lock.
constexpr std::size_t k_max_wait_bytes = std::size_t{1} << 30;

// Adds to the error of a device loss which bytes the host copy lacks.
Error add_missing_ranges(const Error& failure, const RangeSet& ranges) {
  if (failure.code() != ISTHMUS_ERROR_DEVICE_LOST) {
    return failure;
  }
  return fail(ISTHMUS_ERROR_DEVICE_LOST,
              "{}: the host copy is complete except for {} that the device wrote in bytes {} to "
              "{}; those hold the last synchronized contents or part of the device's writes; call "
              "resolve() for the host to continue with them",
              failure.message(), describe_bytes(ranges.nbytes()), ranges.span().begin,
              ranges.span().end);
}

}  // namespace

Submitted Downloader::download(const SyncRequest& request) {
  ISTHMUS_TRY(completion_.complete_and_report());
  ISTHMUS_TRY(copies_.host.ensure());
  const bool is_first = !copies_.state.host_is_valid();
  copies_.state.begin_host();
  if (!copies_.state.device_is_valid()) {
    return Ref<Event>{};
  }
  ISTHMUS_TRY(recorder_.scan());
  return download_known(request, is_first);
}

Submitted Downloader::download_known(const SyncRequest& request, bool is_first) {
  ISTHMUS_TRY(check_conflict(copies_, request.range));
  if (request.waiting == Waiting::this_call) {
    ISTHMUS_TRY(completion_.wait_and_report(request.range, false));
  }
  auto ranges =
      copies_.writes.without_host_ranges(copies_.state.device_dirty().common({request.range}));
  if (!ranges.empty() && os::is_forked_child()) {
    return fail(ISTHMUS_ERROR_FORKED,
                "the host copy lacks {} of this range that the device wrote, and a forked child "
                "cannot copy them: update the host copy before the fork",
                describe_bytes(ranges.nbytes()));
  }
  ranges = without_inflight(std::move(ranges), request.range);
  if (ranges.empty()) {
    return Ref<Event>{};
  }
  auto fetch_result = fetch(ranges, request);
  if (!fetch_result && is_first) {
    copies_.state.cancel_host();
  }
  return fetch_result;
}

RangeSet Downloader::without_inflight(RangeSet ranges, const ByteRange& range) const {
  for (const auto* download : copies_.inflight.overlapping(range, false)) {
    auto pending_ranges = download->ranges;
    pending_ranges.remove(download->outdated);
    ranges.remove(pending_ranges);
  }
  return ranges;
}

// Downloads into a separate block in two cases: if a scan may use `library` during the copy, and if
// a difference from `library` counts as a write. In the second case a partly failed download would
// otherwise leave differences.
bool Downloader::needs_block(bool is_blocking) const noexcept {
  return (!is_blocking && !copies_.host->is_one_memory()) ||
         copies_.host->mechanism() == tracking::TrackingMechanism::bytes;
}

Submitted Downloader::fetch(const RangeSet& ranges, const SyncRequest& request) {
  auto& queue = copies_.queue_for(request);
  auto entry =
      copies_.inflight.make_entry(copies_.is_one_memory ? 0 : queue.serial(), false, ranges);
  if (copies_.is_one_memory) {
    return await_device(std::move(entry), request);
  }
  if (!copies_.state.device_held().covers(ranges)) {
    return fail(ISTHMUS_ERROR_INTERNAL,
                "a download includes bytes that the device copy never held");
  }
  auto list = same_offsets(ranges);
  auto source = copies_.device->at(list.source_begin, list.source_bytes, false);
  ISTHMUS_TRY(source);
  auto& host = copies_.host;
  Endpoint destination{host->library() + list.destination_begin, nullptr, nullptr};
  TransferOptions options;
  options.blocking = request.waiting == Waiting::this_call;
  options.reads_contents = false;  // it reads bytes that the device wrote after any upload
  options.owners.push_back(owner_of(host.memory()));
  if (needs_block(options.blocking)) {
    auto block = block_for(ranges);
    ISTHMUS_TRY(block);
    entry->block = *std::move(block);
    destination.pointer = entry->block.get();
    list = to_block(ranges);
    options.owners.push_back(owner_of(entry->block));
  }
  auto submitted = copy_ranges(&queue, destination, *source, std::move(list), std::move(options));
  if (!submitted) {
    return add_missing_ranges(submitted.failure(), ranges);
  }
  return record_submitted(std::move(entry), *submitted);
}

// With one memory the host's copy is current when the work on the device has completed.
Submitted Downloader::await_device(InflightTransfers::Entry entry, const SyncRequest& request) {
  auto event = copies_.device->pending();
  ISTHMUS_TRY(event);
  entry->event = *event;
  copies_.inflight.add(std::move(entry));
  if (request.waiting == Waiting::this_call) {
    ISTHMUS_TRY(completion_.wait_and_report(request.range, false));
    return Ref<Event>{};
  }
  return *std::move(event);
}

// The event is null if the download has completed.
Submitted Downloader::record_submitted(InflightTransfers::Entry entry, const Ref<Event>& event) {
  const auto& ranges = entry->ranges;
  copies_.counts.bytes_to_host += ranges.nbytes();
  copies_.counts.copies += 1;
  if (event) {
    entry->event = event;
    copies_.inflight.add(std::move(entry));
    return event;
  }
  auto& host = copies_.host;
  if (entry->block) {
    scatter(host->library(), ranges, entry->block.get(), ranges);
  }
  ISTHMUS_TRY(host->publish(ranges, host.writers()));
  completion_.finish_download(ranges);
  return Ref<Event>{};
}

// Whether a download of the range would block for longer than one copy of at most
// `k_max_wait_bytes`.
Result<bool> Downloader::would_wait(const SyncRequest& request) {
  const auto& state = copies_.state;
  if (!state.device_is_valid() ||
      (state.host_is_valid() && !state.device_dirty().overlaps(request.range))) {
    return false;
  }
  return request.range.nbytes() > k_max_wait_bytes
             ? Result<bool>{true}
             : copies_.device.has_pending_work(copies_.queue_for(request));
}

// Begins the download if it would wait. OUT_OF_MEMORY is ignored: there is no memory for the block
// of an asynchronous download, and the caller's blocking call needs none.
Result<void> Downloader::fetch_early(const SyncRequest& request) {
  auto waits = would_wait(request);
  ISTHMUS_TRY(waits);
  if (*waits) {
    auto download_result = download({request.range, request.queue, Waiting::next_use});
    if (!download_result && !is_out_of_memory(download_result)) {
      return download_result.take_error();
    }
  }
  return {};
}

Result<void> Downloader::collect_work(Queue& queue, std::vector<Ref<Event>>& pending) {
  ISTHMUS_TRY(queue.unfinished(pending));
  auto event = copies_.device->pending();
  ISTHMUS_TRY(event);
  pending.push_back(*std::move(event));
  std::erase_if(pending, [](const Ref<Event>& unfinished) { return !unfinished->pending(); });
  return {};
}

Submitted Downloader::arrival(const SyncRequest& request, BeforeArrival mode) {
  const auto& state = copies_.state;
  const bool is_current =
      copies_.inflight.empty() && state.device_dirty().empty() && state.host_is_valid();
  if (os::is_forked_child() || (is_current && !copies_.writes.has_unrecorded())) {
    return Ref<Event>{};
  }
  ISTHMUS_TRY(completion_.complete_and_report());
  if (mode == BeforeArrival::fetch) {
    ISTHMUS_TRY(fetch_early(request));
  }
  std::vector<Ref<Event>> pending;
  if (mode == BeforeArrival::work && state.device_is_valid()) {
    ISTHMUS_TRY(collect_work(copies_.queue_for(request), pending));
  }
  for (const auto* download : copies_.inflight.overlapping(request.range, false)) {
    if (download->event->pending()) {
      pending.push_back(download->event);
    }
  }
  // A separate event, because waiting for it must not count as a report of a failed copy.
  return pending.empty() ? Submitted{Ref<Event>{}} : end_of_all(pending);
}

}  // namespace isthmus
