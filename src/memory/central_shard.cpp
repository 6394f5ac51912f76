// SPDX-License-Identifier: Apache-2.0
#include "memory/central_shard.hpp"

#include <algorithm>
#include <mutex>

#include "memory/page_map.hpp"

namespace isthmus {

CentralShard::CentralShard(const Layout& layout, unsigned number) noexcept
    : most_{static_cast<std::uint32_t>(
          std::min(k_most_batches, k_most_bytes / (layout.block_bytes * layout.in_batch)))},
      batch_{static_cast<std::uint32_t>(layout.in_batch)},
      number_{number},
      slots_{layout.slots},
      slabs_{*layout.slots, layout.poison} {}

std::size_t CentralShard::take(std::span<void*> out, QueueSlots::Slot slot) noexcept {
  const std::lock_guard hold{lock_};
  for (auto at = batches_; at-- != 0;) {
    auto& found = stack_.at(at);
    if (slots_->good(found.freed, slot)) {
      const auto taken = std::min(found.count, out.size());
      std::ranges::copy(blocks_of(at).last(taken), out.begin());
      found.count -= taken;
      if (found.count == 0 && at != --batches_) {
        found = stack_.at(batches_);
        std::ranges::copy(blocks_of(batches_), blocks_.at(at).all.begin());
      }
      return taken;
    }
  }
  return slabs_.take(out, slot);
}

bool CentralShard::has(QueueSlots::Slot slot) noexcept {
  const std::lock_guard hold{lock_};
  return std::any_of(stack_.begin(), stack_.begin() + batches_,
                     [&](const Batch& each) { return slots_->good(each.freed, slot); }) ||
         slabs_.has(slot);
}

bool CentralShard::has_room_for(std::size_t blocks) noexcept {
  const std::lock_guard hold{lock_};
  return blocks == batch_ && batches_ != most_;
}

CentralShard::Share CentralShard::share_of(const Slab& slab) noexcept {
  const std::lock_guard hold{lock_};
  return {slab.kept + slab.waiting, slab.waiting != 0 ? slab.until : Ticket{}};
}

bool CentralShard::keep_batch(std::span<void* const> blocks, Ticket freed) noexcept {
  if (blocks.size() != batch_) {
    return false;
  }
  const std::lock_guard hold{lock_};
  if (batches_ == most_) {
    return false;
  }
  std::ranges::copy(blocks, blocks_.at(batches_).all.begin());
  stack_.at(batches_++) = {freed, batch_};
  return true;
}

std::size_t CentralShard::take_batch(std::span<void*, k_most_in_batch> out,
                                     Ticket& freed) noexcept {
  const std::lock_guard hold{lock_};
  if (batches_ == 0) {
    return 0;
  }
  const auto last = blocks_of(--batches_);
  std::ranges::copy(last, out.begin());
  freed = stack_.at(batches_).freed;
  return last.size();
}

std::size_t CentralShard::give(std::span<void* const> blocks, Ticket freed, Slab*& whole) noexcept {
  const std::lock_guard hold{lock_};
  std::size_t given = 0;
  for (; given < blocks.size(); ++given) {
    auto& owner = process_page_map.at(blocks[given]).last_slab();
    if (owner.shard != number_) {
      break;
    }
    if (auto* filled = slabs_.give(owner, blocks[given], freed)) {
      filled->after = std::exchange(whole, filled);
    }
  }
  return given;
}

void CentralShard::take_untouched(Slab*& whole) noexcept {
  const std::lock_guard hold{lock_};
  while (auto* more = slabs_.take_untouched()) {
    more->after = std::exchange(whole, more);
  }
}

std::size_t CentralShard::add(Slab& made, std::span<void*> out) noexcept {
  const std::lock_guard hold{lock_};
  made.shard = number_;
  return slabs_.add(made, out);
}

}  // namespace isthmus
