// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/own_caches.hpp"

#include <algorithm>
#include <new>

#include "core/sizes.hpp"
#include "memory/pool/slab.hpp"

namespace isthmus {
namespace {

template <class CacheEntry>
void sort_unique(std::vector<CacheEntry>& all) {
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
}

// The entries with this key.
template <class CacheEntry, class Key>
std::span<const CacheEntry> find_sorted(const std::vector<CacheEntry>& all, Key key) noexcept {
  const auto first = std::ranges::lower_bound(all, key, {}, &CacheEntry::key);
  return {first, std::ranges::upper_bound(first, all.end(), key, {}, &CacheEntry::key)};
}

}  // namespace

OwnCaches::OwnCaches(const ThreadCacheOwner& pool, const CentralLists& central) noexcept
    : pool_{pool},
      fences_{pool.fences()},
      central_{central},
      all_idle_{fences_.all_idle()},
      count_{ThreadCache::find_own(pool, caches_)} {
  const auto caches = all();
  const auto last = std::max_element(
      caches.begin(), caches.end(),
      [](const ThreadCache* a, const ThreadCache* b) { return a->found_at < b->found_at; });
  last_ = last != caches.end() ? *last : nullptr;
  try {
    collect_contents();
  } catch (const std::bad_alloc&) {
    runs_.clear();
    slabs_.clear();
  }
}

template <class Visit>
void OwnCaches::visit(ThreadCache& cache, Visit&& visit) const noexcept {
  const ThreadCache::Hold held{cache};
  if (held && cache.owner.load(k_relaxed) == &pool_) {
    visit(cache);
  }
}

// Counts first, then reserves memory, then collects: nothing may be allocated while a thread cache
// is held.
void OwnCaches::collect_contents() {
  std::size_t blocks = 0;
  for (auto* const each : all()) {
    visit(*each, [&](const ThreadCache& cache) {
      for (const auto& bin : cache.bins) {
        blocks += bin.count;
      }
    });
  }
  runs_.reserve(count_ * ThreadCache::k_runs);
  slabs_.reserve(blocks);
  for (auto* const each : all()) {
    visit(*each, [&](ThreadCache& cache) {
      for (const auto& run : cache.runs) {
        if (run.count != 0) {
          runs_.push_back({run.first, &cache});
        }
      }
      for (const auto& bin : cache.bins) {
        for (auto* const block : std::span{bin.blocks}.first(bin.count)) {
          if (slabs_.size() != blocks) {  // full if a cache was being revoked during the count
            slabs_.push_back({&process_page_map.at(block).last_slab(), &cache});
          }
        }
      }
    });
  }
  sort_unique(runs_);
  sort_unique(slabs_);
}

// The readiness of memory that a flush of the cache returns to the pool. That memory waits for the
// next fence of the cache's queue.
Readiness OwnCaches::readiness_of_cache(const ThreadCache& cache) const noexcept {
  const auto entry = cache.entry;
  return entry == QueueFences::k_no_queue || fences_.is_idle(entry) ? Readiness::any_queue
         : entry == current_entry()                                 ? Readiness::in_order
                                                                    : Readiness::none;
}

Readiness OwnCaches::readiness_of_run(std::uint32_t first) const noexcept {
  auto found = Readiness::none;
  for (const auto& [run, holder] : find_sorted(runs_, first)) {
    visit(*holder, [&](const ThreadCache& cache) {
      if (std::ranges::any_of(cache.runs, [first](const ThreadCache::PageRun& each) {
            return each.count != 0 && each.first == first;
          })) {
        found = readiness_of_cache(cache);
      }
    });
  }
  return found;
}

std::uint32_t OwnCaches::blocks_for(const Slab& owner, unsigned size_class,
                                    const ThreadCache& cache) const noexcept {
  const auto& bin = cache.bins.at(size_class);
  const auto nbytes = std::size_t{owner.blocks} * owner.block_bytes;
  const auto found = std::count_if(
      bin.blocks.begin(), bin.blocks.begin() + bin.count,
      [&](const void* block) { return address(block) - address(owner.address_of(0)) < nbytes; });
  return found == 0 || central_.would_keep(size_class, bin.count, cache.shard)
             ? 0
             : static_cast<std::uint32_t>(found);
}

// A slab is not released while a thread cache holds one of its blocks, so only then is its share
// read. If it was released meanwhile, no thread cache holds its blocks.
Readiness OwnCaches::readiness_of_slab(const Slab& owner, unsigned size_class) const noexcept {
  if (size_class >= SizeClasses::k_max_count) {
    return Readiness::none;  // the page was assigned to a page run meanwhile
  }
  auto found = Readiness::any_queue;
  std::uint32_t blocks = 0;  // of the slab, in this thread's caches
  CentralShard::Share in_slab{};
  for (const auto& [slab, holder] : find_sorted(slabs_, &owner)) {
    visit(*holder, [&](const ThreadCache& cache) {
      if (const auto block_count = blocks_for(owner, size_class, cache); block_count != 0) {
        blocks += block_count;
        found = std::min(found, readiness_of_cache(cache));
        in_slab = central_.share_of(size_class, owner);
      }
    });
  }
  return blocks != 0 && blocks + in_slab.blocks == owner.blocks
             ? std::min(found, readiness_of(in_slab.until))
             : Readiness::none;
}

bool OwnCaches::has_block(unsigned size_class) const noexcept {
  bool found = false;
  if (last_ != nullptr) {
    visit(*last_, [&](const ThreadCache& cache) { found = cache.bins.at(size_class).count != 0; });
  }
  return found;
}

}  // namespace isthmus
