// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/slab_source.hpp"

#include <utility>

#include "memory/pool/block_events.hpp"
#include "memory/pool/page_map.hpp"
#include "memory/pool/slab_store.hpp"
#include "memory/pool/thread_cache.hpp"

namespace isthmus {
namespace {

// Writes the fields of a new slab of which no block is allocated.
void initialize(Slab& slab, const SlabShape& shape, const RegionHeap::PageRun& run,
                bool waits) noexcept {
  slab.base.store(run.base, k_relaxed);
  slab.free_count = waits ? 0 : shape.blocks;
  slab.waiting = waits ? shape.blocks : 0;
  slab.until = run.until;
  slab.first_page = run.first;
  for (std::size_t word = 0; word < shape.words(); ++word) {
    const auto remaining = shape.blocks - word * 64;
    const auto all = remaining >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << remaining) - 1;
    slab.free_bitmap()[word] = waits ? 0 : all;
    slab.waiting_bitmap()[word] = waits ? all : 0;
  }
  slab.clear_live_marks();
}

}  // namespace

// A batch holds half of what a thread's only cache of the pool may hold of a class.
SlabSource::SlabSource(const SizeClasses& classes, RegionHeap& regions, RegionSource& source,
                       QueueFences& fences)
    : classes_{classes},
      regions_{regions},
      source_{source},
      fences_{fences},
      lists_{fences, source.poison(), classes,
             [](std::size_t block_bytes) { return ThreadCache::Bin::max_count(block_bytes) / 2; }} {
}

std::size_t SlabSource::take_own(unsigned size_class, std::span<void*> out, Queue& queue,
                                 unsigned shard) noexcept {
  const auto taken = lists_.take_own(size_class, out, fences_.find(&queue), shard);
  observe_reuse(source_.pool(), taken, out, queue);
  return taken.count;
}

std::size_t SlabSource::take_other_shards(unsigned size_class, std::span<void*> out, Queue& queue,
                                          unsigned shard) noexcept {
  const auto taken = lists_.take_other_shards(size_class, out, fences_.find(&queue), shard);
  observe_reuse(source_.pool(), taken, out, queue);
  return taken.count;
}

std::size_t SlabSource::take(unsigned size_class, std::span<void*> out, Queue& queue,
                             unsigned shard) noexcept {
  if (const auto taken = take_own(size_class, out, queue, shard); taken != 0) {
    return taken;
  }
  if (can_spare_slab(size_class)) {
    if (const auto taken = add_from_free(size_class, out, queue, shard); taken != 0) {
      return taken;
    }
  }
  return take_other_shards(size_class, out, queue, shard);
}

std::size_t SlabSource::take_listed(unsigned size_class, std::span<void*> out, Queue& queue,
                                    unsigned shard) noexcept {
  const auto taken = take_own(size_class, out, queue, shard);
  return taken != 0 ? taken : take_other_shards(size_class, out, queue, shard);
}

SlabShape SlabSource::next_shape(unsigned size_class) const noexcept {
  const auto nbytes = classes_.bytes_of(size_class);
  return lists_.slabs(size_class) < SlabShape::k_first ? SlabShape::of_first(nbytes)
                                                       : SlabShape::of_later(nbytes);
}

WantedRun SlabSource::run_for(const SlabShape& shape, Queue& queue) const noexcept {
  const auto smallest = SlabShape::smallest(shape.block_bytes);
  return {shape.block_bytes, shape.pages, smallest.pages, 1, fences_.find(&queue)};
}

bool SlabSource::can_spare_slab(unsigned size_class) const noexcept {
  const auto slab_bytes = next_shape(size_class).pages * k_pool_page_bytes;
  return lists_.free_bytes() + slab_bytes <= source_.counts().held_bytes() / k_spare_divisor;
}

std::size_t SlabSource::add_from_free(unsigned size_class, std::span<void*> out, Queue& queue,
                                      unsigned shard) noexcept {
  const auto shape = next_shape(size_class);
  const auto entry = fences_.find(&queue);
  const auto run = regions_.allocate(shape.pages, 1, entry);
  if (run.count == 0) {
    return 0;
  }
  observe_reuse(source_.pool(), run, entry, queue);
  auto added = cut(size_class, shape, run, out, shard);
  return added ? *added : 0;
}

// Takes the first blocks of a new slab for the caller before other threads can find the slab in the
// central list, since they might take all of these blocks.
Result<std::size_t> SlabSource::cut(unsigned size_class, const SlabShape& shape,
                                    const RegionHeap::PageRun& run, std::span<void*> out,
                                    unsigned shard) noexcept {
  const auto actual =
      run.count == shape.pages ? shape : SlabShape::smallest(classes_.bytes_of(size_class));
  auto* slab = allocate_slab_record(actual);
  if (slab == nullptr) {
    regions_.deallocate(run.first, run.until);
    return Error::no_memory();
  }
  initialize(*slab, actual, run, !fences_.passed(run.until));
  for (RegionHeap::Index each = 0; each < actual.pages; ++each) {
    regions_.table()[run.first + each].set_slab(*slab, size_class);
  }
  process_page_map.set_slab(run.base, actual.pages, *slab, size_class);
  return lists_.add(size_class, *slab, out, shard);
}

void SlabSource::release_empty(Slab* slabs) noexcept {
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

void SlabSource::return_blocks(unsigned size_class, std::span<void* const> blocks, Ticket freed,
                               unsigned shard) noexcept {
  if (!blocks.empty()) {
    release_empty(lists_.return_blocks(size_class, blocks, freed, shard));
  }
}

void SlabSource::flush() noexcept {
  for (unsigned each = 0; each < classes_.count(); ++each) {
    release_empty(lists_.flush(each));
  }
}

}  // namespace isthmus
