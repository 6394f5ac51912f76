// SPDX-License-Identifier: Apache-2.0
// Refills and flushes a pool's thread caches (`lane`): from and to the central lists, and slabs cut
// from page runs.

#include <utility>

#include "memory/page_map.hpp"
#include "memory/pool.hpp"
#include "memory/slab_store.hpp"

namespace isthmus {

Result<std::size_t> Pool::refill(unsigned size_class, std::span<void*> out, Queue* queue,
                                 unsigned shard) {
  slots_->fence_if_due();
  const auto take_own = [&] {
    return central_.take_own(size_class, out, slots_->find(queue), shard);
  };
  const auto take_others = [&] {
    return central_.take_others(size_class, out, slots_->find(queue), shard);
  };
  if (const auto taken = take_own(); taken != 0) {
    return taken;
  }
  if (can_spare_slab(size_class)) {
    if (const auto taken = add_slab_at_hand(size_class, out, queue, shard); taken != 0) {
      return taken;
    }
  }
  if (const auto taken = take_others(); taken != 0) {
    return taken;
  }
  auto added = add_slab(size_class, out, queue, shard);
  if (!added && added.failure().code() == ISTHMUS_ERROR_OUT_OF_MEMORY) {
    const auto own = take_own();  // work that blocks waited for may have completed meanwhile
    if (const auto taken = own != 0 ? own : take_others(); taken != 0) {
      return taken;
    }
  }
  return added;
}

SlabShape Pool::next_slab(unsigned size_class) const noexcept {
  const auto nbytes = classes_.bytes_of(size_class);
  return central_.slabs(size_class) < SlabShape::k_first ? SlabShape::of_first(nbytes)
                                                         : SlabShape::of_later(nbytes);
}

bool Pool::can_spare_slab(unsigned size_class) const noexcept {
  const auto slab_bytes = next_slab(size_class).grains * k_pool_page_bytes;
  return central_.free_bytes() + slab_bytes <= source_.counts().held_bytes() / k_part_to_spare;
}

std::size_t Pool::add_slab_at_hand(unsigned size_class, std::span<void*> out, Queue* queue,
                                   unsigned shard) {
  const auto shape = next_slab(size_class);
  const auto run = regions_.take(shape.grains, 1, slots_->find(queue));
  if (run.count == 0) {
    return 0;
  }
  auto added = cut(size_class, shape, run, out, shard);
  return added ? *added : 0;
}

Result<std::size_t> Pool::add_slab(unsigned size_class, std::span<void*> out, Queue* queue,
                                   unsigned shard) {
  const auto least = SlabShape::of_least(classes_.bytes_of(size_class));
  const auto shape = next_slab(size_class);
  auto run = take_run(
      {classes_.bytes_of(size_class), shape.grains, least.grains, 1, slots_->find(queue)}, queue);
  ISTHMUS_TRY(run);
  return cut(size_class, run->count == shape.grains ? shape : least, *run, out, shard);
}

// Takes the first blocks of a new slab for the caller before other threads can find the slab in the
// central list, since they might take them all.
Result<std::size_t> Pool::cut(unsigned size_class, const SlabShape& shape,
                              const RegionHeap::PageRun& run, std::span<void*> out,
                              unsigned shard) {
  auto* made = take_slab_record(shape);
  if (made == nullptr) {
    regions_.give(run.first, run.until);
    return Error::no_memory();
  }
  made->base.store(run.base, k_relaxed);
  const bool waits = !slots_->passed(run.until);
  made->kept = waits ? 0 : shape.blocks;
  made->waiting = waits ? shape.blocks : 0;
  made->until = run.until;
  made->first_grain = run.first;
  for (std::size_t word = 0; word < shape.words(); ++word) {
    const auto left = shape.blocks - word * 64;
    const auto all = left >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << left) - 1;
    made->free()[word] = waits ? 0 : all;
    made->held_back()[word] = waits ? all : 0;
  }
  made->forget_live();
  for (RegionHeap::Index each = 0; each < shape.grains; ++each) {
    regions_.table()[run.first + each].set_slab(*made, size_class);
  }
  process_page_map.set_slab(run.base, shape.grains, *made, size_class);
  return central_.add(size_class, *made, out, shard);
}

// Returns slabs that have all their blocks to the run heap. `whole` is a list linked by `after`.
void Pool::release_empty_slab(Slab* whole) noexcept {
  auto& table = regions_.table();
  while (whole != nullptr) {
    auto* gone = std::exchange(whole, whole->after);
    const auto first = gone->first_grain;
    const auto grains = gone->grains();
    process_page_map.forget_slab(gone->address_of(0), grains);
    for (RegionHeap::Index each = 0; each < grains; ++each) {
      table[first + each].is.store(PoolPage::State::none, k_relaxed);
    }
    table[first].span.store(grains, k_relaxed);
    const auto until = gone->waiting == 0 ? Ticket{} : gone->until;
    give_slab_record(*gone);
    regions_.give(first, until);
  }
}

void Pool::put_back(unsigned size_class, std::span<void* const> blocks, Ticket freed,
                    unsigned shard) noexcept {
  if (!blocks.empty()) {
    release_empty_slab(central_.give(size_class, blocks, freed, shard));
  }
}

}  // namespace isthmus
