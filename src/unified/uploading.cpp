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

result<std::shared_ptr<std::byte>> gather(const std::byte* from, const range_set& ranges) {
  auto block = block_for(ranges);
  ISTHMUS_TRY(block);
  auto* next = block->get();
  for (const auto& each : ranges) {
    std::memcpy(next, from + each.begin, each.nbytes());
    next += each.nbytes();
  }
  return block;
}

// Converts ranges of the buffer to offsets in the memory of `first`, where the first range begins.
range_set in_memory(const endpoint& first, const range_set& ranges) {
  const auto begin = first.range(0).begin;
  const auto shift = ranges.begin()->begin;
  range_set shifted;
  for (const auto& each : ranges) {
    shifted.add(byte_range{each.begin - shift + begin, each.end - shift + begin});
  }
  return shifted;
}

void note_reported(std::span<const ref<event>> sent) noexcept {
  for (const auto& each : sent) {
    each->note_reported();
  }
}

}  // namespace

// Waits for all of them, whichever fail. Returns the first failure.
result<void> unified_buffer::end_all(std::span<const ref<event>> sent) {
  result<void> outcome;
  for (const auto& each : sent) {
    if (auto ended = each->wait(std::nullopt); !ended && outcome) {
      each->note_reported();
      outcome = ended.take_error();
    }
  }
  return outcome;
}

submitted unified_buffer::upload(const sync_request& wanted) {
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
result<bool> unified_buffer::goes_in_parts(const sync_request& wanted) {
  if (wanted.who != waiting::here || wanted.range != all() || one_memory_ ||
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
submitted unified_buffer::upload_in_parts(queue& on) {
  begin_device();
  unseen_.store(false, std::memory_order_seq_cst);
  undo not_seen{[this] { unseen_.store(true, std::memory_order_seq_cst); }};
  ISTHMUS_TRY(take_in_found());
  const auto writers = who_writes();
  if (writers == tracking::writers::some) {
    need_library_pin();
  }
  std::vector<ref<event>> sent;
  undo not_waited{[&] {
    let_end(sent);
    note_reported(sent);
  }};
  ISTHMUS_TRY(host_->take_in_parts(
      writers, [&](const byte_range& part, range_set&& found, const std::byte* from) {
        found_ = std::move(found);
        return upload_part({part, from, writers}, on, sent);
      }));
  not_seen.dismiss();
  not_waited.dismiss();
  auto outcome = end_all(sent);
  note_reported(sent);  // one failure stands for all of this copy's
  ISTHMUS_TRY(land_all());
  ISTHMUS_TRY(outcome);
  return ref<event>{};
}

// Dirty ranges that this scan did not find were found earlier and have no snapshot yet. Pre:
// `found_` is what this scan found in this sub-range alone.
result<void> unified_buffer::upload_part(const part_of_host& part, queue& on,
                                         std::vector<ref<event>>& sent) {
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
  transfer_options not_waited_for;
  not_waited_for.blocking = false;
  auto ended = put_on_its_way(ranges, part.from, true, std::move(not_waited_for), on);
  ISTHMUS_TRY(ended);
  if (*ended) {
    sent.push_back(*std::move(ended));
  }
  return {};
}

void unified_buffer::begin_device() {
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

void unified_buffer::begin_host() {
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

submitted unified_buffer::upload_known(const sync_request& wanted) {
  ISTHMUS_TRY(need_device());
  begin_device();
  if (!host_is_there_) {
    return ref<event>{};
  }
  if (one_memory_) {
    ISTHMUS_TRY(drop_host_writes(range_set{owed_device_}));
    return ref<event>{};
  }
  ISTHMUS_TRY(check_conflict(wanted.range));
  const auto ranges = settled(owed_device_.common({wanted.range}));
  return ranges.empty() ? submitted{ref<event>{}} : send(ranges, wanted);
}

// Copies directly from the host copy if its bytes are read before this returns, or stay unchanged
// until the caller knows that they were read. Otherwise copies from a separate block.
submitted unified_buffer::send(const range_set& ranges, const sync_request& wanted) {
  auto& on = chosen(wanted);
  auto is_behind = stands_behind_work(on, *device_);
  ISTHMUS_TRY(is_behind);
  const auto writers = who_writes();
  const bool stays = host_->snapshot_stays(writers);
  const bool is_direct =
      *is_behind ? stays && wanted.who == waiting::nobody : stays || wanted.who == waiting::here;
  auto snapped = host_->snapshot(ranges, writers);
  ISTHMUS_TRY(snapped);
  transfer_options options;
  options.blocking = is_direct && wanted.who == waiting::here;
  auto sent = put_on_its_way(ranges, *snapped, is_direct, std::move(options), on);
  const bool may_write = !is_direct && wanted.who != waiting::nobody;
  return sent && may_write ? submitted{ref<event>{}} : std::move(sent);
}

// One operation, from memory that begins at `from`, or from a block gathered from it.
submitted unified_buffer::put_on_its_way(const range_set& ranges, const std::byte* from,
                                         bool is_direct, transfer_options options, queue& on) {
  if (!host_has_.covers(ranges)) {
    return fail(ISTHMUS_ERROR_INTERNAL, "an upload includes bytes that the host copy never held");
  }
  auto list = is_direct ? same_places(ranges) : from_one_block(ranges);
  endpoint source{const_cast<std::byte*>(from) + list.source_begin, nullptr, nullptr};
  if (is_direct) {
    options.owners.push_back(owner_of(host_));
  } else {
    auto block = gather(from, ranges);
    ISTHMUS_TRY(block);
    source.pointer = block->get();
    options.owners.push_back(owner_of(*std::move(block)));
  }
  auto destination = device_->at(list.destination_begin, list.destination_bytes, true);
  ISTHMUS_TRY(destination);
  ISTHMUS_TRY(choose_queue(&on, *destination, source));  // a refusal here changes no bytes
  // Nothing after the copy needs memory, so no submitted transfer is lost track of.
  auto made = flights_.make(on.serial(), true, ranges);
  const auto sending = owed_device_.removing(ranges);
  const auto arriving = device_has_.adding(ranges);
  auto filled = in_memory(*destination, ranges);
  auto& contents = destination->memory->uses().contents();
  content_list::seat awaited;
  const auto failed = make_ref<host_event>();
  auto sent = copy_ranges(&on, *destination, source, std::move(list), std::move(options));
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
    return ref<event>{};
  }
  contents.await(std::move(awaited), std::move(filled), *sent);
  made->ended = *sent;
  flights_.add(std::move(made));
  return sent;
}

submitted unified_buffer::to_device(const sync_request& wanted) {
  const auto held = enter();
  if (auto bad = refuse(wanted.range)) {
    return bad;
  }
  return upload(wanted);
}

}  // namespace isthmus
