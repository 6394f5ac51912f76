#include "memory/central_list.hpp"

#include <algorithm>
#include <mutex>

#include "memory/page_map.hpp"

namespace isthmus {
namespace {

// Lists by `after`.
slab* joined(slab* first, slab* second) noexcept {
  while (first != nullptr) {
    auto* next = std::exchange(first->after, second);
    second = std::exchange(first, next);
  }
  return second;
}

}  // namespace

void central_list::lay_out(queue_slots& slots, free_poison poison, std::size_t block_bytes,
                           std::size_t in_batch) noexcept {
  slots_ = &slots;
  slabs_ = slab_list{slots, poison};
  batch_ = static_cast<std::uint32_t>(in_batch);
  most_ =
      static_cast<std::uint32_t>(std::min(k_most_batches, k_most_bytes / (block_bytes * in_batch)));
}

std::size_t central_list::take(std::span<void*> out, queue_slots::slot whom) noexcept {
  const std::lock_guard hold{lock_};
  for (auto at = batches_; at-- != 0;) {
    auto& found = stack_.at(at);
    if (slots_->good(found.freed, whom)) {
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
  return slabs_.take(out, whom);
}

slab* central_list::put_into_slabs(std::span<void* const> blocks, ticket freed) noexcept {
  slab* whole = nullptr;
  for (auto* block : blocks) {
    auto& owner = process_page_map.at(block).last_slab();
    if (auto* filled = slabs_.give(owner, block, freed)) {
      filled->after = whole;
      whole = filled;
      slab_count_.fetch_sub(1, std::memory_order_relaxed);
    }
  }
  return whole;
}

slab* central_list::give(std::span<void* const> blocks, ticket freed) noexcept {
  const std::lock_guard hold{lock_};
  if (blocks.size() == batch_ && batches_ < most_) {
    std::ranges::copy(blocks, blocks_.at(batches_).all.begin());
    stack_.at(batches_++) = {freed, batch_};
    return nullptr;
  }
  return put_into_slabs(blocks, freed);
}

slab* central_list::flush() noexcept {
  const std::lock_guard hold{lock_};
  slab* whole = nullptr;
  while (batches_ != 0) {
    --batches_;
    whole = joined(put_into_slabs(blocks_of(batches_), stack_.at(batches_).freed), whole);
  }
  while (auto* more = slabs_.take_untouched()) {
    more->after = whole;
    whole = more;
    slab_count_.fetch_sub(1, std::memory_order_relaxed);
  }
  return whole;
}

std::size_t central_list::add(slab& made, std::span<void*> out) noexcept {
  const std::lock_guard hold{lock_};
  slab_count_.fetch_add(1, std::memory_order_relaxed);
  return slabs_.add(made, out);
}

}  // namespace isthmus
