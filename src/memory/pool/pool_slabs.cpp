// SPDX-License-Identifier: Apache-2.0
// Refills a pool's thread caches, from the central lists and from slabs cut from page runs, and
// returns blocks to the central lists.

#include <utility>

#include "memory/pool/page_map.hpp"
#include "memory/pool/pool.hpp"
#include "memory/pool/slab_store.hpp"

namespace isthmus {

Result<std::size_t> Pool::refill(unsigned size_class, std::span<void*> out, Queue* queue,
                                 unsigned shard) {
  slots().fence_if_due();
  const auto take_own = [&] {
    return central_.take_own(size_class, out, slots().find(queue), shard);
  };
  const auto take_others = [&] {
    return central_.take_other_shards(size_class, out, slots().find(queue), shard);
  };
  if (const auto taken = take_own(); taken != 0) {
    return taken;
  }
  if (can_spare_slab(size_class)) {
    if (const auto taken = add_slab_without_growth(size_class, out, queue, shard); taken != 0) {
      return taken;
    }
  }
  if (const auto taken = take_others(); taken != 0) {
    return taken;
  }
  auto added = add_slab(size_class, out, queue, shard);
  if (is_out_of_memory(added)) {
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
  const auto slab_bytes = next_slab(size_class).pages * k_pool_page_bytes;
  return central_.free_bytes() + slab_bytes <= source_.counts().held_bytes() / k_spare_divisor;
}

std::size_t Pool::add_slab_without_growth(unsigned size_class, std::span<void*> out, Queue* queue,
                                          unsigned shard) {
  const auto shape = next_slab(size_class);
  const auto run = regions_.allocate(shape.pages, 1, slots().find(queue));
  if (run.count == 0) {
    return 0;
  }
  auto added = cut_slab(size_class, shape, run, out, shard);
  return added ? *added : 0;
}

Result<std::size_t> Pool::add_slab(unsigned size_class, std::span<void*> out, Queue* queue,
                                   unsigned shard) {
  const auto smallest = SlabShape::smallest(classes_.bytes_of(size_class));
  const auto shape = next_slab(size_class);
  auto run = take_run(
      {classes_.bytes_of(size_class), shape.pages, smallest.pages, 1, slots().find(queue)}, queue);
  ISTHMUS_TRY(run);
  return cut_slab(size_class, run->count == shape.pages ? shape : smallest, *run, out, shard);
}

// Takes the first blocks of a new slab for the caller before other threads can find the slab in the
// central list, since they might take all of these blocks.
Result<std::size_t> Pool::cut_slab(unsigned size_class, const SlabShape& shape,
                                   const RegionHeap::PageRun& run, std::span<void*> out,
                                   unsigned shard) {
  auto* slab = allocate_slab_record(shape);
  if (slab == nullptr) {
    regions_.deallocate(run.first, run.until);
    return Error::no_memory();
  }
  slab->base.store(run.base, k_relaxed);
  const bool waits = !slots().passed(run.until);
  slab->free_count = waits ? 0 : shape.blocks;
  slab->waiting = waits ? shape.blocks : 0;
  slab->until = run.until;
  slab->first_page = run.first;
  for (std::size_t word = 0; word < shape.words(); ++word) {
    const auto remaining = shape.blocks - word * 64;
    const auto all = remaining >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << remaining) - 1;
    slab->free_bitmap()[word] = waits ? 0 : all;
    slab->waiting_bitmap()[word] = waits ? all : 0;
  }
  slab->clear_live_marks();
  for (RegionHeap::Index each = 0; each < shape.pages; ++each) {
    regions_.table()[run.first + each].set_slab(*slab, size_class);
  }
  process_page_map.set_slab(run.base, shape.pages, *slab, size_class);
  return central_.add(size_class, *slab, out, shard);
}

// Returns slabs that hold all their blocks to the run heap. `slabs` is a list linked by `next`.
void Pool::release_empty_slabs(Slab* slabs) noexcept {
  auto& table = regions_.table();
  while (slabs != nullptr) {
    auto* slab = std::exchange(slabs, slabs->next);
    const auto first = slab->first_page;
    const auto page_count = slab->pages();
    process_page_map.clear_slab(slab->address_of(0), page_count);
    for (RegionHeap::Index each = 0; each < page_count; ++each) {
      table[first + each].state.store(PoolPage::State::none, k_relaxed);
    }
    table[first].span.store(page_count, k_relaxed);
    const auto until = slab->waiting == 0 ? Ticket{} : slab->until;
    deallocate_slab_record(*slab);
    regions_.deallocate(first, until);
  }
}

void Pool::return_to_central(unsigned size_class, std::span<void* const> blocks, Ticket freed,
                             unsigned shard) noexcept {
  if (!blocks.empty()) {
    release_empty_slabs(central_.return_blocks(size_class, blocks, freed, shard));
  }
}

}  // namespace isthmus
