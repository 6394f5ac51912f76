// SPDX-License-Identifier: Apache-2.0
#include "unified/transfer_completion.hpp"

#include <span>
#include <utility>

#include "core/expects.hpp"
#include "os/process.hpp"
#include "unified/range_offsets.hpp"

namespace isthmus {
namespace {

// Returns the error with which a later call reports a failed copy.
Error describe_failed(const Event& event, bool to_device) {
  return fail(event.outcome().code(),
              "a copy of this unified buffer to the {} failed after the call that started it had "
              "returned: {}; the next call that needs the bytes copies them again",
              to_device ? "device" : "host", event.outcome().message());
}

}  // namespace

Result<void> TransferCompletion::complete_and_report() {
  ISTHMUS_TRY(complete_all());
  return report_failed();
}

Result<void> TransferCompletion::report_failed() {
  std::erase_if(failed_copies_, [](const FailedCopy& copy) { return copy.event->reported(); });
  if (failed_copies_.empty()) {
    return {};
  }
  const auto failures = std::exchange(failed_copies_, {});
  const auto cause = describe_failed(*failures.front().event, failures.front().to_device);
  return fail(
      cause.code(), "{}{}", cause.message(),
      failures.size() == 1
          ? ""
          : fmt::format(" (other failed copies of this unified buffer: {})", failures.size() - 1));
}

Result<void> TransferCompletion::complete_all() {
  if (os::is_forked_child()) {
    return {};
  }
  ISTHMUS_TRY(complete_inflight());
  return recorder_.record_ended();
}

Result<void> TransferCompletion::complete_inflight() {
  auto& inflight = copies_.inflight;
  for (auto transfer = inflight.begin(); transfer != inflight.end();) {
    if (transfer->second.event->pending()) {
      transfer = inflight.next_after(transfer);
      continue;
    }
    ISTHMUS_TRY(complete(transfer->second));
    transfer = inflight.erase(transfer);
  }
  return {};
}

// The entry of a failed copy is allocated before the transfer is recorded.
Result<void> TransferCompletion::complete(InflightTransfer& transfer) {
  ISTHMUS_EXPECTS(transfer.event->settled());
  if (failed_copies_.size() == failed_copies_.capacity()) {
    failed_copies_.reserve(2 * failed_copies_.size() + 1);
  }
  ISTHMUS_TRY(record(transfer));
  if (!transfer.event->succeeded() && !transfer.is_forgotten) {
    failed_copies_.push_back({transfer.event, transfer.to_device});
  }
  return {};
}

// The ranges of a failed download remain dirty.
Result<void> TransferCompletion::record(InflightTransfer& transfer) {
  const bool succeeded = transfer.event->poll() == ISTHMUS_OK;
  if (!transfer.to_device) {
    return succeeded ? record_download(transfer) : Result<void>{};
  }
  for (auto* upload : copies_.inflight.overlapping(transfer.span(), true)) {
    if (upload->is_before(transfer)) {
      upload->outdated.add(transfer.ranges);
    }
  }
  succeeded ? copies_.state.add_device_held(transfer.ranges) : restore_failed_upload(transfer);
  return {};
}

// Makes the ranges of a failed upload dirty again, except those that a later device write or a
// later upload has replaced. Ranges of a later device write would be a false conflict.
void TransferCompletion::restore_failed_upload(const InflightTransfer& upload) {
  auto restored = upload.ranges;
  restored.remove(upload.outdated);
  for (const auto* other_upload : copies_.inflight.overlapping(upload.span(), true)) {
    if (upload.is_before(*other_upload)) {
      restored.remove(other_upload->ranges);
    }
  }
  copies_.state.restore_upload(restored);
}

// Scans the host copy first for writes since the download began. Bytes that the device has written
// since, that the host has written, or that an open exact write covers are not published.
Result<void> TransferCompletion::record_download(const InflightTransfer& download) {
  ISTHMUS_TRY(recorder_.scan());
  auto downloaded =
      copies_.writes.without_host_ranges(download.ranges.common(copies_.state.device_dirty()));
  downloaded.remove(download.outdated);
  downloaded.remove(copies_.state.host_dirty());
  auto& host = copies_.host;
  if (download.block) {
    scatter(host->library(), download.ranges, download.block.get(), downloaded);
  }
  if (copies_.is_one_memory) {
    ISTHMUS_TRY(host->snapshot(downloaded, tracking::Writers::some));
  } else {
    ISTHMUS_TRY(host->publish(downloaded, host.writers()));
  }
  finish_download(downloaded);
  return {};
}

void TransferCompletion::finish_download(const RangeSet& ranges) {
  copies_.state.finish_download(ranges);
  const auto& device_dirty = copies_.state.device_dirty();
  if (copies_.writes.has_device_writes()) {
    copies_.host->coarsen(copies_.writes.with_device_ranges(device_dirty));
  } else {
    copies_.host->coarsen(device_dirty);
  }
}

Result<void> TransferCompletion::wait_for(const ByteRange& range, bool to_device) {
  if (copies_.inflight.empty() || os::is_forked_child()) {
    return {};
  }
  for (auto* transfer : copies_.inflight.overlapping(range, to_device)) {
    ISTHMUS_TRY(wait_until_ended(std::span{&transfer->event, 1}, std::nullopt));
    ISTHMUS_TRY(complete(*transfer));
    copies_.inflight.erase(*transfer);
  }
  return {};
}

Result<void> TransferCompletion::wait_and_report(const ByteRange& range, bool to_device) {
  ISTHMUS_TRY(wait_for(range, to_device));
  return complete_and_report();
}

}  // namespace isthmus
