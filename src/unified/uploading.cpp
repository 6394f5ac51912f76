// SPDX-License-Identifier: Apache-2.0
// Uploads: copies what the host wrote to the device copy.

#include <algorithm>
#include <cstring>

#include "core/undo.hpp"
#include "os/process.hpp"
#include "transfer/submitting.hpp"
#include "unified/arriving.hpp"
#include "unified/places.hpp"
#include "unified/unified_buffer.hpp"

namespace isthmus {
namespace {

Result<std::shared_ptr<std::byte>> gather(const std::byte* source, const RangeSet& ranges) {
  auto block = block_for(ranges);
  ISTHMUS_TRY(block);
  auto* next = block->get();
  for (const auto& each : ranges) {
    std::memcpy(next, source + each.begin, each.nbytes());
    next += each.nbytes();
  }
  return block;
}

// Converts ranges of the buffer to offsets in the memory of `first`, where the first range begins.
RangeSet in_memory(const Endpoint& first, const RangeSet& ranges) {
  const auto begin = first.range(0).begin;
  const auto shift = ranges.begin()->begin;
  RangeSet shifted;
  for (const auto& each : ranges) {
    shifted.add(ByteRange{each.begin - shift + begin, each.end - shift + begin});
  }
  return shifted;
}

void note_reported(std::span<const Ref<Event>> sent) noexcept {
  for (const auto& each : sent) {
    each->note_reported();
  }
}

}  // namespace

// Waits for all of them, whichever fail. Returns the first failure.
Result<void> UnifiedBuffer::end_all(std::span<const Ref<Event>> sent) {
  Result<void> outcome;
  for (const auto& each : sent) {
    if (auto ended = each->wait(std::nullopt); !ended && outcome) {
      each->note_reported();
      outcome = ended.take_error();
    }
  }
  return outcome;
}

Submitted UnifiedBuffer::upload(const SyncRequest& wanted) {
  ISTHMUS_TRY(settle());
  auto in_parts = goes_in_parts(wanted);
  ISTHMUS_TRY(in_parts);
  if (*in_parts) {
    return upload_in_parts(chosen(wanted));
  }
  ISTHMUS_TRY(look());
  return upload_known(wanted);
}

// True if a scan takes as long as a copy, nothing can conflict, no exact write is open, and the
// copies would not wait for earlier work. The device copy is created first: out-of-memory callbacks
// of the program that its request runs may use this buffer.
Result<bool> UnifiedBuffer::goes_in_parts(const SyncRequest& wanted) {
  if (wanted.who != Waiting::here || wanted.range != all() || one_memory_ ||
      os::is_forked_child()) {
    return false;
  }
  ISTHMUS_TRY(need_device());
  if (!must_look() || host_->least_part() == 0 || host_->least_part() >= nbytes() ||
      !owed_host_.empty() || !writing_.empty()) {
    return false;
  }
  auto is_behind = stands_behind_work(chosen(wanted), *device_);
  ISTHMUS_TRY(is_behind);
  return !*is_behind;
}

// Each sub-range is copied while the next is scanned. All copies have completed when this returns,
// since they read memory that the next scan may write.
Submitted UnifiedBuffer::upload_in_parts(Queue& queue) {
  begin_device();
  unseen_.store(false, std::memory_order_seq_cst);
  Undo not_seen{[this] { unseen_.store(true, std::memory_order_seq_cst); }};
  ISTHMUS_TRY(take_in_found());
  const auto writers = who_writes();
  if (writers == tracking::Writers::some) {
    need_library_pin();
  }
  std::vector<Ref<Event>> sent;
  Undo not_waited{[&] {
    let_end(sent);
    note_reported(sent);
  }};
  ISTHMUS_TRY(host_->take_in_parts(
      writers, [&](const ByteRange& part, RangeSet&& found, const std::byte* source) {
        found_ = std::move(found);
        return upload_part({part, source, writers}, queue, sent);
      }));
  not_seen.dismiss();
  not_waited.dismiss();
  auto outcome = end_all(sent);
  note_reported(sent);  // one failure stands for all of this copy's
  ISTHMUS_TRY(land_all());
  ISTHMUS_TRY(outcome);
  return Ref<Event>{};
}

// Dirty ranges that this scan did not find were found earlier and have no snapshot yet. Pre:
// `found_` is what this scan found in this sub-range alone.
Result<void> UnifiedBuffer::upload_part(const PartOfHost& part, Queue& queue,
                                        std::vector<Ref<Event>>& sent) {
  const auto found = found_;
  ISTHMUS_TRY(take_in_found());
  const auto ranges = settled(owed_device_.common({part.range}));
  auto told_before = ranges;
  told_before.remove(found);
  ISTHMUS_TRY(host_->snapshot(told_before, part.who));
  if (ranges.empty()) {
    return {};
  }
  sent.reserve(sent.size() + 1);
  TransferOptions not_waited_for;
  not_waited_for.blocking = false;
  auto ended = put_on_its_way(ranges, part.from, true, std::move(not_waited_for), queue);
  ISTHMUS_TRY(ended);
  if (*ended) {
    sent.push_back(*std::move(ended));
  }
  return {};
}

void UnifiedBuffer::begin_device() {
  if (device_is_there_) {
    return;
  }
  if (host_is_there_ && !one_memory_) {
    owed_device_ = {all()};
    owed_again_.clear();
    device_has_.clear();
  } else {
    device_has_ = {all()};
  }
  device_is_there_ = true;
}

void UnifiedBuffer::begin_host() {
  if (host_is_there_) {
    return;
  }
  if (device_is_there_) {
    owed_host_ = {all()};
  }
  if (device_is_there_ && !one_memory_) {
    host_has_.clear();
  } else {
    host_has_ = {all()};
  }
  host_is_there_ = true;
}

Submitted UnifiedBuffer::upload_known(const SyncRequest& wanted) {
  ISTHMUS_TRY(need_device());
  begin_device();
  if (!host_is_there_) {
    return Ref<Event>{};
  }
  if (one_memory_) {
    ISTHMUS_TRY(drop_host_writes(RangeSet{owed_device_}));
    return Ref<Event>{};
  }
  ISTHMUS_TRY(check_conflict(wanted.range));
  const auto ranges = settled(owed_device_.common({wanted.range}));
  return ranges.empty() ? Submitted{Ref<Event>{}} : send(ranges, wanted);
}

// Copies directly from the host copy if its bytes are read before this returns, or stay unchanged
// until the caller knows that they were read. Otherwise copies from a separate block.
Submitted UnifiedBuffer::send(const RangeSet& ranges, const SyncRequest& wanted) {
  auto& on = chosen(wanted);
  auto is_behind = stands_behind_work(on, *device_);
  ISTHMUS_TRY(is_behind);
  const auto writers = who_writes();
  const bool stays = host_->snapshot_stays(writers);
  const bool is_direct =
      *is_behind ? stays && wanted.who == Waiting::nobody : stays || wanted.who == Waiting::here;
  auto snapped = host_->snapshot(ranges, writers);
  ISTHMUS_TRY(snapped);
  TransferOptions options;
  options.blocking = is_direct && wanted.who == Waiting::here;
  auto sent = put_on_its_way(ranges, *snapped, is_direct, std::move(options), on);
  const bool may_write = !is_direct && wanted.who != Waiting::nobody;
  return sent && may_write ? Submitted{Ref<Event>{}} : std::move(sent);
}

// One operation, from memory that begins at `origin`, or from a block gathered from it.
Submitted UnifiedBuffer::put_on_its_way(const RangeSet& ranges, const std::byte* origin,
                                        bool is_direct, TransferOptions options, Queue& queue) {
  if (!host_has_.covers(ranges)) {
    return fail(ISTHMUS_ERROR_INTERNAL, "an upload includes bytes that the host copy never held");
  }
  auto list = is_direct ? same_places(ranges) : from_one_block(ranges);
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
  ISTHMUS_TRY(choose_queue(&queue, *destination, source));  // a refusal here changes no bytes
  // Nothing after the copy needs memory, so no submitted transfer is lost track of.
  auto made = flights_.make(queue.serial(), true, ranges);
  const auto sending = owed_device_.removing(ranges);
  const auto arriving = device_has_.adding(ranges);
  auto filled = in_memory(*destination, ranges);
  auto& contents = destination->memory->uses().contents();
  ContentList::Seat awaited;
  const auto failed = make_ref<HostEvent>();
  auto sent = copy_ranges(&queue, *destination, source, std::move(list), std::move(options));
  if (!sent) {  // some of the bytes may have arrived
    failed->finish(sent.failure());
    contents.await(std::move(awaited), std::move(filled), failed);
    return sent;
  }
  owed_device_.apply(sending);
  counts_.bytes_to_device += ranges.nbytes();
  counts_.copies += 1;
  if (!*sent) {
    device_has_.apply(arriving);
    contents.forget(filled);
    return Ref<Event>{};
  }
  contents.await(std::move(awaited), std::move(filled), *sent);
  made->ended = *sent;
  flights_.add(std::move(made));
  return sent;
}

Submitted UnifiedBuffer::to_device(const SyncRequest& wanted) {
  const auto held = enter();
  if (auto bad = refuse(wanted.range)) {
    return bad;
  }
  return upload(wanted);
}

}  // namespace isthmus
