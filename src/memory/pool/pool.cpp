// SPDX-License-Identifier: Apache-2.0
// Allocations and frees that the fast path (pool.hpp) does not serve.
#include "memory/pool/pool.hpp"

#include <algorithm>
#include <bit>
#include <thread>
#include <utility>

#include "core/expects.hpp"
#include "memory/base/freed_before.hpp"
#include "memory/base/other_pools.hpp"
#include "memory/pool/pool_blocks.hpp"
#include "os/process.hpp"

namespace isthmus {
namespace {

// Callers expect a pool's blocks to be aligned like the driver's own allocations.
std::size_t unit_for(const Device& device) noexcept {
  return std::clamp(std::bit_ceil(device.properties().base_alignment), SizeClasses::k_smallest_unit,
                    SizeClasses::k_largest_unit);
}

Error not_from_this_pool(const void* pointer) {
  return fail(
      ISTHMUS_ERROR_INVALID_ARGUMENT,
      "pointer {} was not allocated by this pool: free it through the resource that allocated it",
      pointer);
}
Error inner(const void* pointer) {
  return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
              "{} lies inside a block of this pool: free the pointer that was allocated", pointer);
}

}  // namespace

Result<Ref<Pool>> Pool::create(Context& context, Device& device, UsmKind kind,
                               const Options& options) {
  auto pool = make_ref<Pool>(context, device, kind, options);
  ISTHMUS_TRY(pool->regions_.open());
  auto& table = pool->regions_.table();
  table.common().kind.store(kind, k_relaxed);
  table.common().device.store(&device, k_relaxed);
  table.common().context_key.store(context.key(), k_relaxed);
  table.common().context.store(&context, k_relaxed);
  table.common().has_live_marks.store(options.checks, k_relaxed);
  table.set_owner(pool.get());
  process_pools().add(*pool);
  if (options.shared) {
    options.shared->members().add(*pool);
  }
  if (pool->trim_.window().is_enabled()) {
    DecayingPools::only().join(*pool);
  }
  if (options.initial_bytes != 0) {
    ISTHMUS_TRY(pool->growth_.grow_initially(options.initial_bytes));
  }
  return pool;
}

Pool::Pool(Context& context, Device& device, UsmKind kind, const Options& options)
    : ListedPool{context, device, kind, this},
      ThreadCacheOwner{make_ref<QueueFences>()},
      classes_{unit_for(device)},
      checks_{options.checks},
      source_{this,
              context,
              device,
              kind,
              {options.growth_bytes, options.soft_limit_bytes, options.limit_bytes,
               options.initial_bytes},
              options.shared,
              options.upstream,
              options.remaps,
              options.live},
      regions_{source_, fences()},
      turns_{source_.upstream() != nullptr},
      deferred_{source_, fences()},
      region_trim_{regions_, source_, turns_, deferred_},
      region_growth_{regions_, source_, turns_, deferred_},
      slabs_{classes_, regions_, source_, fences()},
      collector_{*this, slabs_, regions_},
      trim_{source_, regions_, region_trim_, collector_, options.decay},
      growth_{*this, source_, regions_, region_growth_, trim_},
      oom_stages_{{.pool = *this,
                   .caches = *this,
                   .source = source_,
                   .regions = regions_,
                   .turns = turns_,
                   .deferred = deferred_,
                   .slabs = slabs_,
                   .collector = collector_,
                   .trim = trim_,
                   .growth = growth_},
                  options.max_wait,
                  options.device_wait} {}

Pool::~Pool() { fences().drop_queues(); }

void Pool::on_last_release() noexcept {
  if (os::drivers_unavailable()) {
    return;
  }
  if (regions_.is_open()) {
    regions_.table().set_owner(nullptr);
  }
  if (auto* shared = source_.shared()) {
    shared->members().remove(*this);
  }
  DecayingPools::only().leave(*this);
  process_pools().remove(*this);
  ThreadCache::detach_all(*this);
  if (in_continuation()) {
    defer_release(*this);  // a continuation must not call the driver, as `release_now` does
  } else {
    release_now();
  }
}

// Destroys the pool once all its memory was returned to the driver. Memory that work in flight
// still uses is returned after that work, and the pool is destroyed then. If callers still hold
// blocks, or the driver accepts no fence, the pool is never freed: that leaks memory but loses no
// data.
void Pool::release_now() noexcept {
  constexpr int k_max_tries = 1000;
  try {
    // Before the trim, so that work that completes meanwhile counts as running.
    const auto running = fences().running();
    trim(0);
    if (source_.counts().held_bytes() == 0) {
      delete this;
    } else if (!running.empty() && ++release_tries_ < k_max_tries) {
      release_after(*this, running);
    }
  } catch (const std::bad_alloc&) {
    retry_release(*this);
  }
}

void Pool::set_bin_capacities(ThreadCache& cache, std::uint32_t share) const noexcept {
  for (unsigned each = 0; each < classes_.count(); ++each) {
    auto& bin = cache.bins.at(each);
    bin.capacity = std::max(ThreadCache::Bin::max_count(classes_.bytes_of(each)) / share, 2U);
    bin.reset_refill();
  }
}

void Pool::flush(ThreadCache& cache) noexcept {
  const auto freed = fences().next(cache.entry);
  for (unsigned each = 0; each < classes_.count(); ++each) {
    auto& bin = cache.bins.at(each);
    slabs_.return_blocks(each, {bin.blocks.data(), bin.count}, freed, cache.shard);
    bin.count = 0;
    bin.reset_refill();
  }
  flush_runs(cache);
}

Result<void*> Pool::allocate(std::size_t nbytes, std::size_t alignment, Queue& queue) {
  ISTHMUS_EXPECTS(nbytes != 0);
  if (thread_cache_only()) {
    auto* const block = allocate_fast(nbytes, alignment, &queue);
    return block != nullptr ? Result<void*>{block} : Error::no_memory();
  }
  if (auto refused = queue.check_allocation()) {
    return refused;
  }
  const bool is_plain = (alignment & (alignment - 1)) == 0 && alignment <= classes_.unit();
  if (nbytes <= SizeClasses::k_largest && is_plain) [[likely]] {
    return observed(allocate_block(classes_.class_of(nbytes), queue), nbytes, queue);
  }
  if (auto bad = context().check(device(), {kind(), nbytes, alignment})) {
    return bad;
  }
  if (std::max(nbytes, alignment) <= SizeClasses::k_largest && alignment <= k_pool_page_bytes) {
    return observed(allocate_block(classes_.class_of(nbytes, alignment), queue), nbytes, queue);
  }
  return observed(allocate_run(nbytes, alignment, queue), nbytes, queue);
}

Result<void*> Pool::allocate_block(unsigned size_class, Queue& queue) {
  auto* const key = thread_cache_key(&queue);
  auto* const cache = thread_cache_for(key);
  void* block = cache != nullptr ? cache->take_block(size_class) : nullptr;
  if (block == nullptr) {
    const std::size_t wanted = cache != nullptr ? cache->next_refill(size_class) : 1;
    std::array<void*, CentralShard::k_max_batch_blocks> taken;
    auto count = refill(size_class, {taken.data(), wanted}, queue, shard_of(cache));
    ISTHMUS_TRY(count);
    block = taken[*count - 1];
    keep_blocks(size_class, {taken.data(), *count - 1}, queue, key);
  }
  if (checks_) {
    auto& owner = process_page_map.at(block).last_slab();
    owner.mark_live(owner.number_of(block));
  }
  return unpoison(block, classes_.bytes_of(size_class));
}

// Looks up the thread cache again: obtaining the blocks may have called code of the program, and
// this code may have reassigned the thread's caches.
void Pool::keep_blocks(unsigned size_class, std::span<void* const> blocks, Queue& queue,
                       Queue* key) noexcept {
  auto* const cache = blocks.empty() ? nullptr : thread_cache_for(key);
  if (cache != nullptr) {
    blocks = blocks.subspan(cache->keep_blocks(size_class, blocks));
  }
  if (!blocks.empty()) {
    slabs_.return_blocks(size_class, blocks, ticket_after(&queue), shard_of(cache));
  }
}

Result<std::size_t> Pool::refill(unsigned size_class, std::span<void*> out, Queue& queue,
                                 unsigned shard) {
  fences().fence_if_due();
  if (const auto taken = slabs_.take(size_class, out, queue, shard); taken != 0) {
    return taken;
  }
  auto added = add_slab(size_class, out, queue, shard);
  if (is_out_of_memory(added)) {
    // Work that blocks waited for may have completed meanwhile.
    if (const auto taken = slabs_.take_listed(size_class, out, queue, shard); taken != 0) {
      return taken;
    }
  }
  return added;
}

Result<std::size_t> Pool::add_slab(unsigned size_class, std::span<void*> out, Queue& queue,
                                   unsigned shard) {
  const auto shape = slabs_.next_shape(size_class);
  auto run = take_run(slabs_.run_for(shape, queue), queue);
  ISTHMUS_TRY(run);
  return slabs_.cut(size_class, shape, *run, out, shard);
}

Result<RegionHeap::PageRun> Pool::take_run(const WantedRun& wanted, Queue& queue) {
  const auto found = regions_.allocate(wanted.count, wanted.alignment, wanted.entry);
  auto run = found.count != 0 ? Result<RegionHeap::PageRun>{found} : oom_stages_.run(wanted, queue);
  if (run) {
    observe_reuse(this, *run, wanted.entry, queue);
  }
  return run;
}

Result<void*> Pool::allocate_run(std::size_t nbytes, std::size_t alignment, Queue& queue) {
  constexpr auto k_max_bytes = std::size_t{PoolPageTable::k_pages} * k_pool_page_bytes;
  if (nbytes > k_max_bytes || alignment > k_max_bytes) {
    return fail(ISTHMUS_ERROR_OUT_OF_MEMORY,
                "a pool cannot allocate {} aligned to {}: the limit of both is {}",
                describe_bytes(nbytes), describe_bytes(alignment), describe_bytes(k_max_bytes));
  }
  const auto count = static_cast<RegionHeap::Index>(pool_pages_for(nbytes));
  const auto key = queue.key();
  if (auto* cache = thread_cache_for(thread_cache_key(&queue));
      cache != nullptr && alignment <= k_pool_page_bytes) {
    if (auto* run_base = cache->take_run(nbytes, key, regions_.table())) {
      return unpoison(run_base, count * k_pool_page_bytes);
    }
  }
  fences().fence_if_due();
  auto run = take_run({nbytes, count, count, alignment, fences().find(&queue)}, queue);
  ISTHMUS_TRY(run);
  regions_.table().origin_of(run->first).set(nbytes, key);
  return unpoison(run->base, count * k_pool_page_bytes);
}

void Pool::flush_runs(ThreadCache& cache) noexcept {
  const auto freed = fences().next(cache.entry);
  for (auto& cached : cache.runs) {
    if (cached.count != 0) {
      regions_.deallocate(cached.first, freed);
      cached.count = 0;
    }
  }
  cache.cached_pages = 0;
}

Result<void> Pool::deallocate(void* pointer, std::size_t, Queue* queue) noexcept {
  auto* page = process_page_map.find(pointer);
  if (page == nullptr || !regions_.has(page)) {
    return not_from_this_pool(pointer);
  }
  note_free_after_work();
  if (page->state.load(k_relaxed) == PoolPage::State::slab) [[likely]] {
    return free_block(*page, pointer, queue);
  }
  if (page->is_recorded()) {
    const auto* const start = block_containing(*page, pointer).start;
    if (auto freed = process_page_map.free_recorded()(start, pointer, queue)) {
      return *std::move(freed);
    }
  }
  return page->is_slab() ? free_block(*page, pointer, queue) : free_run(*page, pointer, queue);
}

bool Pool::deallocate_observed(void* pointer, Queue* queue) noexcept {
  const auto seen = process_page_map.at(pointer).load();
  // A queue that the last cache serves is of this context.
  if (queue == nullptr || !detail::last_thread_cache->serves(*this, queue) ||
      !queue->is_in_order() || !regions_.has_bare_blocks(seen)) {
    return false;
  }
  note_free_after_work();
  return static_cast<bool>(free_block(*seen.record(), pointer, queue));
}

void Pool::recycle(void* pointer, Queue* queue) noexcept {
  auto& page = *process_page_map.find(pointer);
  static_cast<void>(page.is_slab() ? free_block(page, pointer, queue)
                                   : free_run(page, pointer, queue));
}

Result<void> Pool::free_block(PoolPage& page, void* pointer, Queue* queue) noexcept {
  const auto size_class = page.span.load(k_relaxed);
  if (checks_) {
    auto* owner = page.in_slab();
    const auto block = owner == nullptr ? Slab::k_no_block : owner->block_at(pointer);
    if (block == Slab::k_no_block) {
      return inner(pointer);
    }
    if (!owner->mark_freed(block)) {
      return freed_before(pointer);
    }
  }
  put_in_thread_cache(size_class, pointer, queue);
  return {};
}

Ticket Pool::ticket_after(Queue* queue) noexcept {
  if (queue != nullptr) {
    ThreadCache::reserve_entry_for(*this, *queue);
  }
  return fences().ticket_after(queue);
}

void Pool::put_in_thread_cache(unsigned size_class, void* pointer, Queue* queue) noexcept {
  observe_free(pointer, queue);
  poison(pointer, classes_.bytes_of(size_class), queue);
  if (auto* cache = thread_cache_after(queue);
      cache == nullptr || !keep_block(*cache, size_class, pointer)) {
    slabs_.return_blocks(size_class, {&pointer, 1}, ticket_after(queue), shard_of(cache));
  }
}

bool Pool::keep_block(ThreadCache& cache, unsigned size_class, void* block) noexcept {
  const ThreadCache::Hold held{cache};
  if (!held) {
    return false;
  }
  auto& bin = cache.bins[size_class];
  if (bin.count == bin.capacity) [[unlikely]] {
    const auto batch = bin.capacity / 2;  // the oldest blocks, least likely in a CPU cache
    slabs_.return_blocks(size_class, {bin.blocks.data(), batch}, fences().next(cache.entry),
                         cache.shard);
    std::copy(bin.blocks.begin() + batch, bin.blocks.begin() + bin.count, bin.blocks.begin());
    bin.count -= batch;
  }
  bin.blocks[bin.count++] = block;
  return true;
}

Result<void> Pool::free_run(PoolPage& page, void* pointer, Queue* queue) noexcept {
  auto* first = first_of_run(&page);
  if (first == nullptr) {
    return freed_before(pointer);
  }
  if (first != &page || address(pointer) % k_pool_page_bytes != 0) {
    return inner(pointer);
  }
  auto state = first->state.load(k_relaxed);
  do {
    if (state == PoolPage::State::cached) {
      return freed_before(pointer);
    }
  } while (!first->state.compare_exchange_weak(state, PoolPage::State::cached, k_relaxed));
  put_run_in_thread_cache(*first, pointer, queue);
  return {};
}

void Pool::put_run_in_thread_cache(PoolPage& first, void* pointer, Queue* queue) noexcept {
  ISTHMUS_EXPECTS(first.state.load(k_relaxed) == PoolPage::State::cached);
  observe_free(pointer, queue);
  const ThreadCache::PageRun freed{static_cast<std::byte*>(pointer),
                                   regions_.table().number_of(&first), first.span.load(k_relaxed)};
  poison(pointer, freed.count * k_pool_page_bytes, queue);
  if (auto* cache = thread_cache_after(queue); cache == nullptr || !keep_run(*cache, freed)) {
    regions_.deallocate(freed.first, ticket_after(queue));
  }
}

bool Pool::keep_run(ThreadCache& cache, const ThreadCache::PageRun& freed) noexcept {
  const ThreadCache::Hold held{cache};
  if (!held) {
    return false;
  }
  auto& oldest = cache.runs[++cache.newest % ThreadCache::k_runs];
  if (oldest.count != 0) {
    regions_.deallocate(oldest.first, fences().next(cache.entry));
    cache.cached_pages -= std::exchange(oldest.count, 0);
  }
  if (cache.cached_pages + freed.count > ThreadCache::k_max_cached_pages) {
    flush_runs(cache);  // a run that is larger than the limit is cached alone
  }
  oldest = freed;
  cache.cached_pages += freed.count;
  return true;
}

MemoryResource::MemoryUsage Pool::usage() noexcept {
  const auto& counts = source_.counts();
  return {counts.held_bytes(), regions_.free_bytes(), counts.maps(), counts.unmaps()};
}

// A check may read metadata that other threads are changing, so only damage that persists is
// reported.
Result<void> Pool::verify() {
  constexpr int k_max_tries = 100;
  Result<void> status;
  for (int tries = 0; tries < k_max_tries; ++tries) {
    status = regions_.verify();
    if (status) {
      status = slabs_.verify();
    }
    if (status) {
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  ISTHMUS_TRY(status);
  auto* const upstream = source_.upstream();
  return upstream != nullptr ? upstream->verify() : Result<void>{};
}

}  // namespace isthmus
