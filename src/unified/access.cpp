// SPDX-License-Identifier: Apache-2.0
// Pointers to either copy, for reading, for writing, and for writing exactly some bytes.

#include <algorithm>

#include "core/sizes.hpp"
#include "core/undo.hpp"
#include "os/process.hpp"
#include "unified/unified_buffer.hpp"

namespace isthmus {

Result<const std::byte*> UnifiedBuffer::read_host(const ByteRange& range) {
  const auto held = enter();
  auto read = updated_host(range);
  is_read_ = is_read_ || read;
  return read;
}

// If nothing is dirty or in flight this costs a few loads.
Result<const std::byte*> UnifiedBuffer::updated_host(const ByteRange& range) {
  if (auto bad = refuse(range)) {
    return bad;
  }
  if (!host_is_there_ || !owed_host_.empty() || !flights_.empty() || !failed_.empty() ||
      has_uncounted()) {
    ISTHMUS_TRY(download({range, nullptr, Waiting::here}));
  }
  return host_->view() + range.begin;
}

Result<std::byte*> UnifiedBuffer::begin_host_view(const ByteRange& range) {
  const auto held = enter();
  auto read = updated_host(range);
  ISTHMUS_TRY(read);
  host_->expect_writers();
  views_.fetch_add(1, std::memory_order_acq_rel);
  return const_cast<std::byte*>(*read);
}

// Sets `unseen_` first: a scan that no longer sees the view then sees `unseen_`.
void UnifiedBuffer::end_host_view() noexcept {
  unseen_.store(true, std::memory_order_seq_cst);
  if (views_.fetch_sub(1, std::memory_order_seq_cst) == 1 &&
      dead_.load(std::memory_order_seq_cst)) {
    free();
  }
}

Result<std::byte*> UnifiedBuffer::begin_host_write(const ByteRange& range, bool keeps) {
  const auto held = enter();
  if (auto bad = refuse(range)) {
    return bad;
  }
  if (keeps) {
    ISTHMUS_TRY(download({range, nullptr, Waiting::here}));
  } else {
    ISTHMUS_TRY(need_host());
    begin_host();
    ISTHMUS_TRY(let_land(range));
  }
  writing_.reserve(writing_.size() + 1);
  RangeSet written{range};
  auto begun = host_->begin_write(range, keeps, who_writes());
  ISTHMUS_TRY(begun);
  writing_.push_back({range, std::move(written), *begun});
  return begun;
}

// A failed copy is reported by the next call.
Result<void> UnifiedBuffer::end_host_write(const ByteRange& range, bool kept) {
  const auto held = enter();
  const auto found = std::find_if(writing_.rbegin(), writing_.rend(), [&](const ExactWrite& each) {
    return each.range == range && !each.has_ended;
  });
  if (found == writing_.rend()) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "no write of bytes {} to {} is in progress",
                range.begin, range.end);
  }
  const auto begun = std::prev(found.base());
  if (auto bad = refuse(range)) {
    writing_.erase(begun);
    let_host_go();
    return bad;
  }
  begun->kept = kept;
  begun->has_ended = true;
  ISTHMUS_TRY(publish(*begun));  // first, and without memory: views may be written from here on
  return land_all();
}

// Orders `queue` after the uploads in flight on other queues.
Result<void> UnifiedBuffer::stand_behind_uploads(Queue& queue, const ByteRange& range) const {
  std::vector<Ref<Event>> before;
  for (const auto* each : flights_.of(range, true)) {
    if (each->on() != queue.serial()) {
      before.push_back(each->ended);
    }
  }
  return before.empty() ? Result<void>{} : queue.stand_behind(before);
}

Result<Ref<Buffer>> UnifiedBuffer::device(const SyncRequest& wanted) {
  const auto held = enter();
  if (auto bad = refuse(wanted.range)) {
    return bad;
  }
  ISTHMUS_TRY(upload(wanted));
  device_holds_nothing_ = false;
  auto& on = chosen(wanted);
  // Holds a reference during the wait: a callback that runs meanwhile may request memory, for which
  // unused device copies are released, or free this buffer.
  const auto whole = device_;
  ISTHMUS_TRY(stand_behind_uploads(on, wanted.range));
  if (auto bad = refuse(wanted.range)) {
    return bad;
  }
  return &on == queue_.get() ? Result<Ref<Buffer>>{whole} : whole->on_queue(on);
}

// Hashed chunks are uploaded completely, so that the host's next writes to them can be found.
ByteRange UnifiedBuffer::whole_chunks(const ByteRange& range) const noexcept {
  if (!host_ || host_->by() != tracking::Means::hashes) {
    return range;
  }
  const auto chunk = host_->granule();
  return {range.begin / chunk * chunk, std::min(wanted_.nbytes, round_up(range.end, chunk))};
}

Result<Ref<Buffer>> UnifiedBuffer::begin_device_write(const SyncRequest& wanted) {
  const auto held = enter();
  if (auto bad = refuse(wanted.range)) {
    return bad;
  }
  const bool is_new = open_device_write(wanted.range) == device_writes_.end();
  if (is_new) {
    device_writes_.push_back({wanted.range});
  }
  Undo not_begun{[&] {
    if (const auto at = open_device_write(wanted.range); is_new && at != device_writes_.end()) {
      device_writes_.erase(at);
    }
  }};
  if (host_is_there_ && !one_memory_) {
    host_->refine(wanted.range);  // first: writes found in whole granules go with the upload
  }
  auto first = wanted;
  first.range = whole_chunks(wanted.range);
  auto made = device(first);
  ISTHMUS_TRY(made);
  not_begun.dismiss();
  return made;
}

}  // namespace isthmus
