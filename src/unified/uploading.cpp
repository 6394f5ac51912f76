// SPDX-License-Identifier: Apache-2.0
// Uploads: copies ranges that the host wrote to the device copy.

#include <algorithm>
#include <cstring>

#include "core/undo.hpp"
#include "os/process.hpp"
#include "transfer/submitting.hpp"
#include "unified/arriving.hpp"
#include "unified/range_offsets.hpp"
#include "unified/unified_buffer.hpp"

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

// Waits for all events, including after a failure. Returns the first failure.
Result<void> UnifiedBuffer::wait_for_events(std::span<const Ref<Event>> events) {
  Result<void> outcome;
  for (const auto& event : events) {
    if (auto status = event->wait(std::nullopt); !status && outcome) {
      event->note_reported();
      outcome = status.take_error();
    }
  }
  return outcome;
}

Submitted UnifiedBuffer::upload(const SyncRequest& request) {
  ISTHMUS_TRY(complete_and_report());
  auto in_chunks = should_upload_in_chunks(request);
  ISTHMUS_TRY(in_chunks);
  if (*in_chunks) {
    return upload_in_chunks(queue_for(request));
  }
  ISTHMUS_TRY(scan_host());
  return upload_known(request);
}

// Returns true if the whole buffer is uploaded by a blocking call, a scan takes as long as a copy,
// no conflict is possible, no exact write is open, and the copies would not wait for earlier work.
// The device copy is created first, since its allocation may run out-of-memory callbacks of the
// program that use this buffer.
Result<bool> UnifiedBuffer::should_upload_in_chunks(const SyncRequest& request) {
  if (request.waiting != Waiting::this_call || request.range != all() || one_memory_ ||
      os::is_forked_child()) {
    return false;
  }
  ISTHMUS_TRY(ensure_device());
  if (!needs_scan() || host_->min_part_bytes() == 0 || host_->min_part_bytes() >= nbytes() ||
      !device_dirty_.empty() || !host_writes_.empty()) {
    return false;
  }
  auto must_wait = has_pending_work(queue_for(request), *device_);
  ISTHMUS_TRY(must_wait);
  return !*must_wait;
}

// Copies each chunk while the next one is scanned. All copies have completed when this returns,
// since they read memory that the next scan may write.
Submitted UnifiedBuffer::upload_in_chunks(Queue& queue) {
  begin_device();
  has_unscanned_writes_.store(false, std::memory_order_seq_cst);
  Undo restore_unscanned{[this] { has_unscanned_writes_.store(true, std::memory_order_seq_cst); }};
  ISTHMUS_TRY(add_found_writes());
  const auto writers = current_writers();
  if (writers == tracking::Writers::some) {
    ensure_library_pin();
  }
  std::vector<Ref<Event>> events;
  Undo drain{[&] {
    wait_until_ended(events);
    note_reported(events);
  }};
  ISTHMUS_TRY(host_->take_in_parts(
      writers, [&](const ByteRange& chunk, RangeSet&& written, const std::byte* source) {
        found_writes_ = std::move(written);
        return upload_chunk({chunk, source, writers}, queue, events);
      }));
  restore_unscanned.dismiss();
  drain.dismiss();
  auto outcome = wait_for_events(events);
  note_reported(events);  // `outcome` reports the first failure on behalf of all
  ISTHMUS_TRY(complete_all());
  ISTHMUS_TRY(outcome);
  return Ref<Event>{};
}

// Dirty ranges that this scan did not report were reported by an earlier scan and have no snapshot
// yet. Pre: `found_writes_` contains only the ranges that this scan reported in this chunk.
Result<void> UnifiedBuffer::upload_chunk(const HostChunk& chunk, Queue& queue,
                                         std::vector<Ref<Event>>& events) {
  const auto newly_found = found_writes_;
  ISTHMUS_TRY(add_found_writes());
  const auto ranges = without_open_writes(host_dirty_.common({chunk.range}));
  auto found_earlier = ranges;
  found_earlier.remove(newly_found);
  ISTHMUS_TRY(host_->snapshot(found_earlier, chunk.writers));
  if (ranges.empty()) {
    return {};
  }
  events.reserve(events.size() + 1);
  TransferOptions async_options;
  async_options.blocking = false;
  auto event = submit_upload(ranges, chunk.source, true, std::move(async_options), queue);
  ISTHMUS_TRY(event);
  if (*event) {
    events.push_back(*std::move(event));
  }
  return {};
}

void UnifiedBuffer::begin_device() {
  if (device_is_valid_) {
    return;
  }
  if (host_is_valid_ && !one_memory_) {
    host_dirty_ = {all()};
    host_dirty_again_.clear();
    device_held_.clear();
  } else {
    device_held_ = {all()};
  }
  device_is_valid_ = true;
}

void UnifiedBuffer::begin_host() {
  if (host_is_valid_) {
    return;
  }
  if (device_is_valid_) {
    device_dirty_ = {all()};
  }
  if (device_is_valid_ && !one_memory_) {
    host_held_.clear();
  } else {
    host_held_ = {all()};
  }
  host_is_valid_ = true;
}

Submitted UnifiedBuffer::upload_known(const SyncRequest& request) {
  ISTHMUS_TRY(ensure_device());
  begin_device();
  if (!host_is_valid_) {
    return Ref<Event>{};
  }
  if (one_memory_) {
    ISTHMUS_TRY(drop_host_writes(RangeSet{host_dirty_}));
    return Ref<Event>{};
  }
  ISTHMUS_TRY(check_conflict(request.range));
  const auto ranges = without_open_writes(host_dirty_.common({request.range}));
  return ranges.empty() ? Submitted{Ref<Event>{}} : send(ranges, request);
}

// Uploads directly from the host copy if its bytes are read before this returns, or do not change
// until the caller knows that they were read. Otherwise uploads from a separate block.
Submitted UnifiedBuffer::send(const RangeSet& ranges, const SyncRequest& request) {
  auto& queue = queue_for(request);
  auto must_wait = has_pending_work(queue, *device_);
  ISTHMUS_TRY(must_wait);
  const auto writers = current_writers();
  const bool is_stable = host_->is_snapshot_stable(writers);
  const bool is_direct = *must_wait ? is_stable && request.waiting == Waiting::next_use
                                    : is_stable || request.waiting == Waiting::this_call;
  auto snapshot = host_->snapshot(ranges, writers);
  ISTHMUS_TRY(snapshot);
  TransferOptions options;
  options.blocking = is_direct && request.waiting == Waiting::this_call;
  auto submitted = submit_upload(ranges, *snapshot, is_direct, std::move(options), queue);
  const bool host_may_write = !is_direct && request.waiting != Waiting::next_use;
  return submitted && host_may_write ? Submitted{Ref<Event>{}} : std::move(submitted);
}

// Submits the ranges as one operation. If `is_direct` is set the source is memory that begins at
// `origin`, otherwise a block that is gathered from it.
Submitted UnifiedBuffer::submit_upload(const RangeSet& ranges, const std::byte* origin,
                                       bool is_direct, TransferOptions options, Queue& queue) {
  if (!host_held_.covers(ranges)) {
    return fail(ISTHMUS_ERROR_INTERNAL, "an upload includes bytes that the host copy never held");
  }
  auto list = is_direct ? same_offsets(ranges) : from_block(ranges);
  Endpoint source{const_cast<std::byte*>(origin) + list.source_begin, nullptr, nullptr};
  if (is_direct) {
    options.owners.push_back(owner_of(host_));
  } else {
    auto block = gather(origin, ranges);
    ISTHMUS_TRY(block);
    source.pointer = block->get();
    options.owners.push_back(owner_of(*std::move(block)));
  }
  auto destination = device_->at(list.destination_begin, list.destination_bytes, true);
  ISTHMUS_TRY(destination);
  ISTHMUS_TRY(choose_queue(&queue, *destination, source));  // an error here changes no bytes
  // All allocations come before the copy, so that every submitted transfer is recorded.
  auto entry = inflight_.make_entry(queue.serial(), true, ranges);
  const auto dirty_change = host_dirty_.prepare_remove(ranges);
  const auto held_change = device_held_.prepare_add(ranges);
  auto fill_ranges = offsets_in_allocation(*destination, ranges);
  auto& contents = destination->memory->uses().contents();
  ContentList::Seat fill_entry;
  const auto failed_fill = make_ref<HostEvent>();
  auto submitted = copy_ranges(&queue, *destination, source, std::move(list), std::move(options));
  if (!submitted) {  // some of the bytes may have been copied
    failed_fill->finish(submitted.failure());
    contents.record_fill(std::move(fill_entry), std::move(fill_ranges), failed_fill);
    return submitted;
  }
  host_dirty_.apply(dirty_change);
  counts_.bytes_to_device += ranges.nbytes();
  counts_.copies += 1;
  if (!*submitted) {
    device_held_.apply(held_change);
    contents.forget(fill_ranges);
    return Ref<Event>{};
  }
  contents.record_fill(std::move(fill_entry), std::move(fill_ranges), *submitted);
  entry->event = *submitted;
  inflight_.add(std::move(entry));
  return submitted;
}

Submitted UnifiedBuffer::to_device(const SyncRequest& request) {
  const auto guard = enter();
  if (auto error = validate(request.range)) {
    return error;
  }
  return upload(request);
}

}  // namespace isthmus
