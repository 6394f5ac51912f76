// What is owed, on its way from one copy to the other.

#include <algorithm>
#include <cstring>

#include "core/undo.hpp"
#include "memory/result_memory.hpp"
#include "os/process.hpp"
#include "transfer/ranges.hpp"
#include "unified/unified_buffer.hpp"

namespace isthmus {
namespace {

// The same offsets on both sides, counted from the first.
range_list same_places(const range_set& ranges) {
  range_list list;
  list.each.reserve(ranges.size());
  const auto first = ranges.begin()->begin;
  for (const auto& each : ranges) {
    list.each.push_back({each.begin - first, each.begin - first, each.nbytes()});
    list.destination_bytes = each.end - first;
    list.nbytes += each.nbytes();
  }
  list.destination_begin = list.source_begin = first;
  list.source_bytes = list.destination_bytes;
  return list;
}

// Into ranges, out of one block that has them one behind the other.
range_list from_one_block(const range_set& ranges) {
  auto list = same_places(ranges);
  std::size_t at = 0;
  for (auto& each : list.each) {
    each.source_offset = at;
    at += each.nbytes;
  }
  list.source_begin = 0;
  list.source_bytes = at;
  return list;
}

range_list into_one_block(const range_set& ranges) {
  auto list = from_one_block(ranges);
  for (auto& each : list.each) {
    std::swap(each.destination_offset, each.source_offset);
  }
  std::swap(list.destination_begin, list.source_begin);
  std::swap(list.destination_bytes, list.source_bytes);
  return list;
}

// For all of the ranges, one behind the other.
result<std::shared_ptr<std::byte>> block_for(const range_set& ranges) {
  auto room = allocate_result(ranges.nbytes());
  ISTHMUS_TRY(room);
  return std::shared_ptr<std::byte>{static_cast<std::byte*>(*room), &free_result};
}

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

// What is wanted of the ranges that the block has. Pre: some of these.
void scatter(std::byte* to, const range_set& ranges, const std::byte* block,
             const range_set& wanted) noexcept {
  auto part = wanted.begin();
  for (const auto& each : ranges) {
    for (; part != wanted.end() && part->begin < each.end; ++part) {
      std::memcpy(to + part->begin, block + (part->begin - each.begin), part->nbytes());
    }
    block += each.nbytes();
  }
}

// Whether a copy on `on` would wait for work that is there now, or on any other queue with this
// memory.
result<bool> stands_behind_work(queue& on, buffer& memory) {
  std::vector<ref<event>> there;
  ISTHMUS_TRY(on.unfinished(there));
  if (std::ranges::any_of(there, [](const ref<event>& each) { return each->pending(); })) {
    return true;
  }
  auto ended = memory.wait(os::clock::now());
  if (!ended && ended.failure().code() != ISTHMUS_ERROR_TIMEOUT) {
    return ended.take_error();
  }
  return !ended;
}

}  // namespace

// Downloads are looked at for writes that came in their way before they count as landed. One that
// cannot be counted now is in flight still.
result<void> unified_buffer::settle() {
  if (flights_.empty() || os::is_forked_child()) {
    return {};
  }
  for (auto each = flights_.begin(); each != flights_.end();) {
    if (each->ended->pending()) {
      ++each;
      continue;
    }
    ISTHMUS_TRY(land(*each));
    each = flights_.erase(each);
  }
  return {};
}

// A flight that failed leaves all owed that it had: its event tells of that.
result<void> unified_buffer::land(flight& done) {
  const bool went_well = done.ended->poll() == ISTHMUS_OK;
  if (done.to_device) {
    if (!went_well) {
      owed_device_.add(done.ranges);
    }
    return {};
  }
  if (!went_well) {
    return {};
  }
  ISTHMUS_TRY(look());
  auto good = done.ranges;
  good.remove(done.outdated);
  good.remove(owed_device_);
  if (done.block) {
    scatter(host_->library(), done.ranges, done.block.get(), good);
  }
  if (one_memory_) {
    ISTHMUS_TRY(host_->snapshot(good, tracking::writers::some));
  } else {
    ISTHMUS_TRY(host_->publish(good));
  }
  return came_home(good);
}

result<void> unified_buffer::came_home(const range_set& ranges) {
  owed_host_.remove(ranges);
  undo not_seen{[this] { unseen_.store(true, std::memory_order_seq_cst); }};
  host_->coarsen(owed_host_, found_);
  ISTHMUS_TRY(take_in_found());
  not_seen.dismiss();
  return {};
}

result<void> unified_buffer::let_land(const byte_range& range) {
  for (const auto& each : flights_) {
    if (!each.to_device && each.ranges.overlaps(range)) {
      let_end(std::span{&each.ended, 1});
    }
  }
  return settle();
}

submitted unified_buffer::upload(const sync_request& wanted) {
  ISTHMUS_TRY(settle());
  ISTHMUS_TRY(look());
  return upload_known(wanted);
}

submitted unified_buffer::upload_known(const sync_request& wanted) {
  ISTHMUS_TRY(need_device());
  if (host_is_there_ && !one_memory_ && !device_is_there_) {
    owed_device_ = {all()};
  }
  device_is_there_ = true;
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

// Straight from the host copy where its bytes are read before this returns, or stay there till the
// caller is told that they were; else out of a block of their own.
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
  auto list = same_places(ranges);
  transfer_options options;
  options.blocking = is_direct && wanted.who == waiting::here;
  endpoint source{const_cast<std::byte*>(*snapped) + list.source_begin, nullptr, nullptr};
  if (is_direct) {
    options.owners.push_back(owner_of(host_));
  } else {
    auto block = gather(*snapped, ranges);
    ISTHMUS_TRY(block);
    list = from_one_block(ranges);
    source.pointer = block->get();
    options.owners.push_back(owner_of(*std::move(block)));
  }
  auto destination = device_->at(list.destination_begin, list.destination_bytes, true);
  ISTHMUS_TRY(destination);
  // What follows the copy needs no memory, so that nothing on its way is forgotten.
  flights_.reserve(flights_.size() + 1);
  flight made{{}, ranges, true, on.serial()};
  auto left = owed_device_;
  left.remove(ranges);
  auto sent = copy_ranges(&on, *destination, source, std::move(list), std::move(options));
  ISTHMUS_TRY(sent);
  owed_device_ = std::move(left);
  counts_.bytes_to_device += ranges.nbytes();
  counts_.copies += 1;
  if (!*sent) {
    return ref<event>{};
  }
  made.ended = *sent;
  flights_.push_back(std::move(made));
  const bool may_write = !is_direct && wanted.who != waiting::nobody;
  return may_write ? ref<event>{} : *std::move(sent);
}

submitted unified_buffer::download(const sync_request& wanted) {
  ISTHMUS_TRY(settle());
  ISTHMUS_TRY(need_host());
  const bool is_first = !host_is_there_;
  if (is_first && device_is_there_) {
    owed_host_ = {all()};
  }
  host_is_there_ = true;
  if (!device_is_there_) {
    return ref<event>{};
  }
  ISTHMUS_TRY(look());
  ISTHMUS_TRY(check_conflict(wanted.range));
  if (wanted.who == waiting::here) {
    ISTHMUS_TRY(let_land(wanted.range));
  }
  auto ranges = owed_host_.common({wanted.range});
  if (!ranges.empty() && os::is_forked_child()) {
    return fail(ISTHMUS_ERROR_FORKED,
                "the host copy lacks what the device wrote in {} of this range, and a forked child "
                "cannot fetch it: bring it up to date before the fork",
                describe_bytes(ranges.nbytes()));
  }
  for (const auto& each : flights_) {
    if (!each.to_device) {
      auto coming = each.ranges;
      coming.remove(each.outdated);
      ranges.remove(coming);
    }
  }
  if (ranges.empty()) {
    return ref<event>{};
  }
  auto got = fetch(ranges, wanted);
  if (!got && is_first) {
    host_is_there_ = false;
    owed_host_.clear();
  }
  return got;
}

namespace {

error tell_what_is_missing(const error& failure, const range_set& ranges) {
  if (failure.code() != ISTHMUS_ERROR_DEVICE_LOST) {
    return failure;
  }
  return fail(ISTHMUS_ERROR_DEVICE_LOST,
              "{}: the host copy is whole but for what the device wrote in {} of {} to {}, and has "
              "there what was last the same; resolve() for the host goes on with that",
              failure.message(), describe_bytes(ranges.nbytes()), ranges.begin()->begin,
              std::prev(ranges.end())->end);
}

}  // namespace

submitted unified_buffer::fetch(const range_set& ranges, const sync_request& wanted) {
  flights_.reserve(flights_.size() + 1);
  flight made{{}, ranges};
  if (one_memory_) {
    auto ended = device_->pending();
    ISTHMUS_TRY(ended);
    made.ended = *ended;
    flights_.push_back(std::move(made));
    if (wanted.who == waiting::here) {
      ISTHMUS_TRY(let_land(wanted.range));
      return ref<event>{};
    }
    return *std::move(ended);
  }
  auto list = same_places(ranges);
  auto source = device_->at(list.source_begin, list.source_bytes, false);
  ISTHMUS_TRY(source);
  endpoint destination{host_->library() + list.destination_begin, nullptr, nullptr};
  transfer_options options;
  options.blocking = wanted.who == waiting::here;
  options.owners.push_back(owner_of(host_));
  if (!options.blocking && !host_->is_one_memory()) {  // a look may need `library` meanwhile
    auto block = block_for(ranges);
    ISTHMUS_TRY(block);
    made.block = *std::move(block);
    destination.pointer = made.block.get();
    list = into_one_block(ranges);
    options.owners.push_back(owner_of(made.block));
  }
  auto got =
      copy_ranges(&chosen(wanted), destination, *source, std::move(list), std::move(options));
  if (!got) {
    return tell_what_is_missing(got.failure(), ranges);
  }
  counts_.bytes_to_host += ranges.nbytes();
  counts_.copies += 1;
  if (*got) {
    made.ended = *got;
    flights_.push_back(std::move(made));
    return got;
  }
  ISTHMUS_TRY(host_->publish(ranges));
  ISTHMUS_TRY(came_home(ranges));
  return ref<event>{};
}

submitted unified_buffer::to_device(const sync_request& wanted) {
  const auto held = enter();
  if (auto bad = refuse(wanted.range)) {
    return bad;
  }
  return upload(wanted);
}

submitted unified_buffer::to_host(const sync_request& wanted) {
  const auto held = enter();
  if (auto bad = refuse(wanted.range)) {
    return bad;
  }
  return download(wanted);
}

}  // namespace isthmus
