// SPDX-License-Identifier: Apache-2.0
#include "unified/uploader.hpp"

#include <cstring>
#include <memory>
#include <utility>

#include "core/undo.hpp"
#include "os/process.hpp"
#include "transfer/submitting.hpp"
#include "unified/conflict.hpp"
#include "unified/range_offsets.hpp"

namespace isthmus {
namespace {

Result<std::shared_ptr<std::byte>> gather(const std::byte* source, const RangeSet& ranges) {
  auto block = block_for(ranges);
  ISTHMUS_TRY(block);
  auto* next = block->get();
  for (const auto& range : ranges) {
    std::memcpy(next, source + range.begin, range.nbytes());
    next += range.nbytes();
  }
  return block;
}

// Converts ranges of the buffer to offsets in the allocation of `first`, which points to the
// beginning of the first range.
RangeSet offsets_in_allocation(const Endpoint& first, const RangeSet& ranges) {
  const auto begin = first.range(0).begin;
  const auto first_begin = ranges.begin()->begin;
  RangeSet shifted;
  for (const auto& range : ranges) {
    shifted.add(ByteRange{range.begin - first_begin + begin, range.end - first_begin + begin});
  }
  return shifted;
}

void note_reported(std::span<const Ref<Event>> events) noexcept {
  for (const auto& event : events) {
    event->note_reported();
  }
}

}  // namespace

// What recording an upload needs. All of it is allocated before the copy is submitted, so that
// every submitted upload is recorded.
struct Uploader::Record {
  InflightTransfers::Entry entry;
  DirtyState::Upload change;
  RangeSet fill_ranges;  // relative to the allocation of the device copy
  ContentList& contents;
  ContentList::Seat fill_entry{};
  Ref<HostEvent> failed_fill = make_ref<HostEvent>();
};

Result<void> Uploader::wait_for_events(std::span<const Ref<Event>> events) {
  Result<void> outcome;
  for (const auto& event : events) {
    if (auto status = event->wait(std::nullopt); !status && outcome) {
      if (event->settled()) {
        event->note_reported();
      }
      outcome = status.take_error();
    }
  }
  return outcome;
}

Submitted Uploader::upload(const SyncRequest& request) {
  ISTHMUS_TRY(completion_.complete_and_report());
  auto in_chunks = should_upload_in_chunks(request);
  ISTHMUS_TRY(in_chunks);
  if (*in_chunks) {
    return upload_in_chunks(copies_.queue_for(request));
  }
  ISTHMUS_TRY(recorder_.scan());
  return upload_known(request);
}

// Returns true if the whole buffer is uploaded by a blocking call, a scan takes as long as a copy,
// no conflict is possible, no exact write is open, and the copies would not wait for earlier work.
// The device copy is created first, since its allocation may run out-of-memory callbacks of the
// program that use this buffer.
Result<bool> Uploader::should_upload_in_chunks(const SyncRequest& request) {
  if (request.waiting != Waiting::this_call || request.range != copies_.all() ||
      copies_.is_one_memory || os::is_forked_child()) {
    return false;
  }
  ISTHMUS_TRY(copies_.device.ensure(copies_.host));
  const auto& host = copies_.host;
  if (!recorder_.needs_scan() || host->min_part_bytes() == 0 ||
      host->min_part_bytes() >= copies_.request.nbytes || !copies_.state.device_dirty().empty() ||
      copies_.writes.has_host_writes()) {
    return false;
  }
  auto must_wait = copies_.device.has_pending_work(copies_.queue_for(request));
  ISTHMUS_TRY(must_wait);
  return !*must_wait;
}

// Copies each chunk while the next one is scanned. All copies have completed when this returns,
// since they read memory that the next scan may write.
Submitted Uploader::upload_in_chunks(Queue& queue) {
  auto& host = copies_.host;
  copies_.state.begin_device();
  host.begin_scan();
  Undo restore_unscanned{[&] { host.mark_unscanned(); }};
  ISTHMUS_TRY(recorder_.record_detected());
  const auto writers = host.writers();
  if (writers == tracking::Writers::some) {
    host.ensure_library_pin();
  }
  std::vector<Ref<Event>> events;
  Undo drain{[&] {
    wait_until_ended(events);
    note_reported(events);
  }};
  ISTHMUS_TRY(host->take_in_parts(
      writers, [&](const ByteRange& chunk, RangeSet&& written, const std::byte* source) {
        recorder_.detected() = std::move(written);
        return upload_chunk({chunk, source, writers}, queue, events);
      }));
  restore_unscanned.dismiss();
  wait_until_ended(events);
  drain.dismiss();
  auto outcome = wait_for_events(events);
  note_reported(events);  // `outcome` reports the first failure on behalf of all
  ISTHMUS_TRY(completion_.complete_all());
  ISTHMUS_TRY(outcome);
  return Ref<Event>{};
}

// Dirty ranges that this scan did not report were reported by an earlier scan and have no snapshot
// yet. The detected writes are only those that this scan reported in this chunk.
Result<void> Uploader::upload_chunk(const HostChunk& chunk, Queue& queue,
                                    std::vector<Ref<Event>>& events) {
  const auto newly_found = recorder_.detected();
  ISTHMUS_TRY(recorder_.record_detected());
  const auto ranges =
      copies_.writes.without_host_ranges(copies_.state.host_dirty().common({chunk.range}));
  auto found_earlier = ranges;
  found_earlier.remove(newly_found);
  ISTHMUS_TRY(copies_.host->snapshot(found_earlier, chunk.writers));
  if (ranges.empty()) {
    return {};
  }
  events.reserve(events.size() + 1);
  TransferOptions async_options;
  async_options.blocking = false;
  auto event = submit(ranges, chunk.source, true, std::move(async_options), queue);
  ISTHMUS_TRY(event);
  if (*event) {
    events.push_back(*std::move(event));
  }
  return {};
}

Submitted Uploader::upload_known(const SyncRequest& request) {
  ISTHMUS_TRY(copies_.device.ensure(copies_.host));
  copies_.state.begin_device();
  if (!copies_.state.host_is_valid()) {
    return Ref<Event>{};
  }
  if (copies_.is_one_memory) {
    ISTHMUS_TRY(recorder_.discard_host_writes(RangeSet{copies_.state.host_dirty()}));
    return Ref<Event>{};
  }
  ISTHMUS_TRY(check_conflict(copies_, request.range));
  const auto ranges =
      copies_.writes.without_host_ranges(copies_.state.host_dirty().common({request.range}));
  return ranges.empty() ? Submitted{Ref<Event>{}} : send(ranges, request);
}

// Uploads directly from the host copy if its bytes are read before this returns, or do not change
// until the caller knows that they were read. Otherwise uploads from a separate block.
Submitted Uploader::send(const RangeSet& ranges, const SyncRequest& request) {
  auto& queue = copies_.queue_for(request);
  auto must_wait = copies_.device.has_pending_work(queue);
  ISTHMUS_TRY(must_wait);
  const auto& host = copies_.host;
  const auto writers = host.writers();
  const bool is_stable = host->is_snapshot_stable(writers);
  const bool is_direct = *must_wait ? is_stable && request.waiting == Waiting::next_use
                                    : is_stable || request.waiting == Waiting::this_call;
  auto snapshot = host->snapshot(ranges, writers);
  ISTHMUS_TRY(snapshot);
  TransferOptions options;
  options.blocking = is_direct && request.waiting == Waiting::this_call;
  auto submitted = submit(ranges, *snapshot, is_direct, std::move(options), queue);
  const bool host_may_write = !is_direct && request.waiting != Waiting::next_use;
  return submitted && host_may_write ? Submitted{Ref<Event>{}} : std::move(submitted);
}

// The endpoint of the first byte that the upload reads. An owner keeps its memory alive.
Result<Endpoint> Uploader::source_of(const RangeSet& ranges, const std::byte* origin,
                                     bool is_direct, std::vector<Owner>& owners) const {
  if (is_direct) {
    owners.push_back(owner_of(copies_.host.memory()));
    return Endpoint{const_cast<std::byte*>(origin) + ranges.begin()->begin, nullptr, nullptr};
  }
  auto block = gather(origin, ranges);
  ISTHMUS_TRY(block);
  auto* const start = block->get();
  owners.push_back(owner_of(*std::move(block)));
  return Endpoint{start, nullptr, nullptr};
}

// Submits the ranges as one operation. If `is_direct` is set the source is memory that begins at
// `origin`, otherwise a block that is gathered from it.
Submitted Uploader::submit(const RangeSet& ranges, const std::byte* origin, bool is_direct,
                           TransferOptions options, Queue& queue) {
  if (!copies_.state.host_held().covers(ranges)) {
    return fail(ISTHMUS_ERROR_INTERNAL, "an upload includes bytes that the host copy never held");
  }
  auto list = is_direct ? same_offsets(ranges) : from_block(ranges);
  auto source = source_of(ranges, origin, is_direct, options.owners);
  ISTHMUS_TRY(source);
  auto destination = copies_.device->at(list.destination_begin, list.destination_bytes, true);
  ISTHMUS_TRY(destination);
  ISTHMUS_TRY(choose_queue(&queue, *destination, *source));  // an error here changes no bytes
  Record record{copies_.inflight.make_entry(queue.serial(), true, ranges),
                copies_.state.prepare_upload(ranges), offsets_in_allocation(*destination, ranges),
                destination->memory->uses().contents()};
  auto submitted = copy_ranges(&queue, *destination, *source, std::move(list), std::move(options));
  if (!submitted) {
    record_failed(record, submitted.failure());
    return submitted;
  }
  copies_.counts.bytes_to_device += ranges.nbytes();
  copies_.counts.copies += 1;
  record_submitted(record, *submitted);
  return submitted;
}

// Some of the bytes may have been copied.
void Uploader::record_failed(Record& record, const Error& failure) noexcept {
  record.failed_fill->finish(failure);
  record.contents.record_fill(std::move(record.fill_entry), std::move(record.fill_ranges),
                              record.failed_fill);
}

// The event is null if the upload has completed.
void Uploader::record_submitted(Record& record, const Ref<Event>& event) noexcept {
  copies_.state.submit_upload(record.change);
  if (!event) {
    copies_.state.finish_upload(record.change);
    record.contents.forget(record.fill_ranges);
    return;
  }
  record.contents.record_fill(std::move(record.fill_entry), std::move(record.fill_ranges), event);
  record.entry->event = event;
  copies_.inflight.add(std::move(record.entry));
}

Result<void> Uploader::order_after_uploads(Queue& queue, const ByteRange& range) const {
  std::vector<Ref<Event>> uploads;
  for (const auto* upload : copies_.inflight.overlapping(range, true)) {
    if (upload->queue_serial() != queue.serial()) {
      uploads.push_back(upload->event);
    }
  }
  return queue.order_after(uploads);
}

}  // namespace isthmus
