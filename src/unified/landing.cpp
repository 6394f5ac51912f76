// What was on its way and has ended.

#include <cstring>

#include "core/undo.hpp"
#include "os/process.hpp"
#include "unified/unified_buffer.hpp"

namespace isthmus {
namespace {

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
  // Neither what the device wrote since, nor what the host's writers have or won meanwhile.
  auto good = settled(done.ranges.common(owed_host_));
  good.remove(done.outdated);
  good.remove(owed_device_);
  if (done.block) {
    scatter(host_->library(), done.ranges, done.block.get(), good);
  }
  if (one_memory_) {
    ISTHMUS_TRY(host_->snapshot(good, tracking::writers::some));
  } else {
    ISTHMUS_TRY(host_->publish(good, who_writes()));
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

}  // namespace isthmus
