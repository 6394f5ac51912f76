// SPDX-License-Identifier: Apache-2.0
#include "memory/resources/monotonic_resource.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "core/lock_guard.hpp"
#include "core/sizes.hpp"
#include "memory/base/freed_before.hpp"

namespace isthmus {

void* MonotonicResource::allocate_from(Chunk& source, std::size_t nbytes, std::size_t alignment) {
  const auto& facts = source.memory->facts();
  const auto base = address(facts.base);
  const auto begin = ((base + source.used_bytes + alignment - 1) & ~(alignment - 1)) - base;
  if (begin > facts.nbytes || nbytes > facts.nbytes - begin) {
    return nullptr;
  }
  source.blocks.push_back({begin, nbytes, true});
  source.used_bytes = begin + nbytes;
  return static_cast<std::byte*>(facts.base) + begin;
}

// Examines only the last few chunks. So a queue whose chunk lies before those of several other
// queues soon gets a new one.
void* MonotonicResource::try_allocate(std::size_t nbytes, std::size_t alignment,
                                      const Queue& queue) {
  constexpr int k_max_scanned = 8;
  int scanned = 0;
  for (auto each = chunks_.rbegin(); each != chunks_.rend() && scanned < k_max_scanned; ++each) {
    ++scanned;
    if (!each->until || each->queue == &queue || each->until->settled()) {
      ++changes_;
      return allocate_from(*each, nbytes, alignment);
    }
  }
  return nullptr;
}

bool MonotonicResource::has_queue(const Queue& queue) const noexcept {
  return std::any_of(queues_.rbegin(), queues_.rend(),
                     [&](const Ref<Queue>& each) { return each.get() == &queue; });
}

void MonotonicResource::add_queue(Queue& queue) {
  if (!has_queue(queue)) {
    queues_.emplace_back(&queue);
  }
}

bool MonotonicResource::try_add_queue(Queue& queue) noexcept try {
  add_queue(queue);
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

void* MonotonicResource::allocate_fast(std::size_t nbytes, std::size_t alignment,
                                       Queue* queue) noexcept try {
  if (nbytes == 0 || !is_plain(alignment, queue)) {
    return nullptr;
  }
  const LockGuard hold{lock_};
  return has_queue(*queue)
             ? try_allocate(nbytes,
                            alignment != 0 ? alignment : device().properties().base_alignment,
                            *queue)
             : nullptr;
} catch (const std::bad_alloc&) {
  return nullptr;
}

// Does not hold the lock while it calls upstream. Threads that need a chunk concurrently therefore
// allocate one each, and the free space in all but the last of these remains unused.
Result<void*> MonotonicResource::allocate(std::size_t nbytes, std::size_t alignment, Queue& queue) {
  auto checked = alignment_of(nbytes, alignment);
  ISTHMUS_TRY(checked);
  std::size_t size = 0;
  {
    const LockGuard hold{lock_};
    add_queue(queue);
    if (void* block = try_allocate(nbytes, *checked, queue)) {
      return block;
    }
    size = std::max(next_bytes_, nbytes);
  }
  auto chunk = allocate_chunk(size, *checked, queue);
  if (size != nbytes && is_out_of_memory(chunk)) {
    size = nbytes;
    chunk = allocate_chunk(size, *checked, queue);
  }
  ISTHMUS_TRY(chunk);
  auto until = queue.is_known_idle() ? Result<Ref<Event>>{Ref<Event>{}} : queue.pending();
  ISTHMUS_TRY(until);
  Chunk next{*std::move(chunk), *std::move(until), &queue};
  void* const first = allocate_from(next, nbytes, *checked);
  const LockGuard hold{lock_};
  chunks_.reserve(chunks_.size() + 1);  // a chunk must not be destroyed under the lock
  chunks_.push_back(std::move(next));
  ++changes_;
  next_bytes_ = size <= SIZE_MAX / 2 ? 2 * size : size;
  return first;
}

// Searches the last chunks first: they are the largest and contain most blocks.
MonotonicResource::BlockPosition MonotonicResource::find_block(const void* pointer) noexcept {
  const auto chunk = std::find_if(chunks_.rbegin(), chunks_.rend(), [&](const Chunk& each) {
    return address(pointer) - address(each.memory->facts().base) < each.used_bytes;
  });
  if (chunk == chunks_.rend()) {
    return {};
  }
  const auto offset = address(pointer) - address(chunk->memory->facts().base);
  const auto next =
      std::upper_bound(chunk->blocks.begin(), chunk->blocks.end(), offset,
                       [](std::size_t value, const Block& each) { return value < each.begin; });
  const bool is_inside =
      next != chunk->blocks.begin() && offset - std::prev(next)->begin < std::prev(next)->nbytes;
  return {&*chunk, is_inside ? &*std::prev(next) : nullptr};
}

CutBlock MonotonicResource::block_at(const void* pointer) noexcept {
  const LockGuard hold{lock_};
  const auto found = find_block(pointer);
  if (found.block == nullptr) {
    return {};
  }
  auto* const base = static_cast<std::byte*>(found.chunk->memory->facts().base);
  return {base + found.block->begin, found.block->nbytes, found.block->live};
}

Result<void> MonotonicResource::end_block(const void* pointer) noexcept {
  const auto found = find_block(pointer);
  if (found.block == nullptr) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "pointer {} was not allocated by this resource, or was released", pointer);
  }
  if (address(found.chunk->memory->facts().base) + found.block->begin != address(pointer)) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "{} lies inside a block of this resource: free the pointer that was allocated",
                pointer);
  }
  if (!found.block->live) {
    return freed_before(pointer);
  }
  found.block->live = false;
  ++changes_;
  return {};
}

// A block remains live until the work that may use it is recorded or has ended.
Result<void> MonotonicResource::deallocate(void* pointer, std::size_t, Queue* after) noexcept {
  {
    const LockGuard hold{lock_};
    if (after == nullptr || try_add_queue(*after)) {
      return end_block(pointer);
    }
  }
  ISTHMUS_TRY(wait_for(*after));
  const LockGuard hold{lock_};
  return end_block(pointer);
}

void MonotonicResource::release_all() noexcept {
  std::vector<Chunk> released;
  std::vector<Ref<Queue>> queues;
  {
    const LockGuard hold{lock_};
    released.swap(chunks_);
    queues.swap(queues_);
    next_bytes_ = first_bytes_;
    ++changes_;
  }
  for (auto& each : released) {
    const bool is_recorded = std::all_of(
        queues.begin(), queues.end(),
        [&](const Ref<Queue>& queue) { return record_queue_work(*each.memory, *queue); });
    if (!is_recorded) {
      each.memory.leak();  // a leak rather than corrupt data
    }
  }
}

bool MonotonicResource::is_in_use(const Chunk& chunk) noexcept {
  return std::any_of(chunk.blocks.begin(), chunk.blocks.end(),
                     [](const Block& each) { return each.live; });
}

MonotonicResource::QueueSnapshot MonotonicResource::snapshot_queues() {
  const LockGuard hold{lock_};
  return {queues_, changes_};
}

// Inspects the queues without the lock. If anything changed meanwhile, any chunk may be in use, so
// none is released.
std::size_t MonotonicResource::release_unused() noexcept try {
  const auto snapshot = snapshot_queues();
  if (!std::all_of(snapshot.all.begin(), snapshot.all.end(),
                   [](const auto& each) { return each->is_known_idle(); })) {
    return 0;
  }
  std::vector<Chunk> released;
  const LockGuard hold{lock_};
  if (changes_ != snapshot.changes) {
    return 0;
  }
  const auto unused = std::stable_partition(chunks_.begin(), chunks_.end(), is_in_use);
  released.assign(std::move_iterator{unused}, std::move_iterator{chunks_.end()});
  chunks_.erase(unused, chunks_.end());
  next_bytes_ = chunks_.empty() ? first_bytes_ : next_bytes_;
  return std::accumulate(
      released.begin(), released.end(), std::size_t{0},
      [](auto sum, const auto& each) { return sum + each.memory->facts().nbytes; });
} catch (const std::bad_alloc&) {
  return 0;
}

// Queues whose handle was exported are not queried, since their streams may have been destroyed.
std::vector<Ref<Event>> MonotonicResource::running() {
  std::vector<Ref<Event>> events;
  for (const auto& each : snapshot_queues().all) {
    if (!each->is_exported()) {
      static_cast<void>(each->unfinished(events));
    }
  }
  return events;
}

}  // namespace isthmus
