// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/central_shard.hpp"

#include <algorithm>

#include "core/expects.hpp"
#include "core/lock_guard.hpp"
#include "memory/pool/page_map.hpp"

namespace isthmus {

CentralShard::CentralShard(const Layout& layout, unsigned number) noexcept
    : max_batches_{static_cast<std::uint32_t>(
          std::min(k_max_batches, k_max_bytes / (layout.block_bytes * layout.batch_blocks)))},
      batch_blocks_{static_cast<std::uint32_t>(layout.batch_blocks)},
      number_{number},
      fences_{layout.fences},
      slabs_{*layout.fences, layout.poison} {}

TakenBlocks CentralShard::take(std::span<void*> out, QueueFences::EntryIndex entry) noexcept {
  const LockGuard hold{lock_};
  for (auto at = batches_; at-- != 0;) {
    auto& batch = stack_.at(at);
    if (fences_->is_usable(batch.freed, entry)) {
      const auto taken = std::min(batch.count, out.size());
      const bool is_from_other = is_from_other_queue(batch.freed, entry);
      std::ranges::copy(blocks_of(at).last(taken), out.begin());
      batch.count -= taken;
      if (batch.count == 0 && at != --batches_) {
        batch = stack_.at(batches_);
        std::ranges::copy(blocks_of(batches_), blocks_.at(at).all.begin());
      }
      return {taken, is_from_other ? TakenBlocks::bits(0, taken) : 0};
    }
  }
  return slabs_.take(out, entry);
}

bool CentralShard::has(QueueFences::EntryIndex entry) noexcept {
  const LockGuard hold{lock_};
  return std::any_of(stack_.begin(), stack_.begin() + batches_,
                     [&](const Batch& each) { return fences_->is_usable(each.freed, entry); }) ||
         slabs_.has(entry);
}

bool CentralShard::has_room_for(std::size_t blocks) noexcept {
  const LockGuard hold{lock_};
  return blocks == batch_blocks_ && batches_ != max_batches_;
}

CentralShard::Share CentralShard::share_of(const Slab& slab) noexcept {
  ISTHMUS_EXPECTS(slab.shard == number_, slab.shard, number_);
  const LockGuard hold{lock_};
  return {slab.free_count + slab.waiting, slab.waiting != 0 ? slab.until : Ticket{}};
}

bool CentralShard::keep_batch(std::span<void* const> blocks, Ticket freed) noexcept {
  if (blocks.size() != batch_blocks_) {
    return false;
  }
  const LockGuard hold{lock_};
  if (batches_ == max_batches_) {
    return false;
  }
  std::ranges::copy(blocks, blocks_.at(batches_).all.begin());
  stack_.at(batches_++) = {freed, batch_blocks_};
  return true;
}

std::size_t CentralShard::take_batch(std::span<void*, k_max_batch_blocks> out,
                                     Ticket& freed) noexcept {
  const LockGuard hold{lock_};
  if (batches_ == 0) {
    return 0;
  }
  const auto last = blocks_of(--batches_);
  std::ranges::copy(last, out.begin());
  freed = stack_.at(batches_).freed;
  return last.size();
}

std::size_t CentralShard::return_blocks(std::span<void* const> blocks, Ticket freed,
                                        Slab*& empty_slabs) noexcept {
  const LockGuard hold{lock_};
  std::size_t returned = 0;
  for (; returned < blocks.size(); ++returned) {
    auto& owner = process_page_map.at(blocks[returned]).last_slab();
    if (owner.shard != number_) {
      break;
    }
    if (auto* empty_slab = slabs_.return_block(owner, blocks[returned], freed)) {
      empty_slab->next = std::exchange(empty_slabs, empty_slab);
    }
  }
  return returned;
}

void CentralShard::take_unused_slabs(Slab*& empty_slabs) noexcept {
  const LockGuard hold{lock_};
  while (auto* slab = slabs_.take_unused_slab()) {
    slab->next = std::exchange(empty_slabs, slab);
  }
}

std::size_t CentralShard::add(Slab& slab, std::span<void*> out) noexcept {
  const LockGuard hold{lock_};
  slab.shard = number_;
  return slabs_.add(slab, out);
}

Result<void> CentralShard::verify() noexcept {
  const LockGuard hold{lock_};
  if (const auto* damaged = slabs_.find_damaged()) {
    return fail(ISTHMUS_ERROR_INTERNAL,
                "the slab of {}-byte blocks at {} contradicts its list, or has a block that is "
                "both free and allocated",
                damaged->block_bytes, static_cast<void*>(damaged->address_of(0)));
  }
  for (std::size_t batch = 0; batch < batches_; ++batch) {
    for (auto* block : blocks_of(batch)) {
      auto& owner = process_page_map.at(block).last_slab();
      const auto number = owner.block_at(block);
      if (number == Slab::k_no_block || owner.is_live(number)) {
        return fail(ISTHMUS_ERROR_INTERNAL, "the block at {} is both free and allocated", block);
      }
    }
  }
  return {};
}

}  // namespace isthmus
