// SPDX-License-Identifier: Apache-2.0
#include "memory/resources/arena_resource.hpp"

#include <algorithm>
#include <iterator>

#include "core/lock_guard.hpp"
#include "core/sizes.hpp"
#include "os/thread_id.hpp"

namespace isthmus {

ArenaResource::Share::Share(std::atomic<std::uint64_t>& held, std::uint64_t nbytes,
                            std::uint64_t limit) noexcept
    : held_{held} {
  auto current = held.load(std::memory_order_relaxed);
  while (current <= limit && nbytes <= limit - current) {
    if (held.compare_exchange_weak(current, current + nbytes, std::memory_order_relaxed)) {
      nbytes_ = nbytes;
      return;
    }
  }
}

// Successive threads on one queue, and successive queues on one thread, get different arenas.
Arena& ArenaResource::arena_of(const Queue& queue) noexcept {
  constexpr std::uint64_t k_queue_multiplier = 9;
  return arenas_[(os::thread_id() + k_queue_multiplier * queue.serial()) % k_arenas];
}

Arena* ArenaResource::arena_at(const void* pointer) noexcept {
  const SharedLockGuard hold{lock_};
  const auto next = superblocks_.upper_bound(address(pointer));
  if (next == superblocks_.begin()) {
    return nullptr;
  }
  const auto& found = std::prev(next)->second.superblock;
  return address(pointer) - address(found.base()) < found.nbytes() ? found.arena : nullptr;
}

Result<void*> ArenaResource::allocate(std::size_t nbytes, std::size_t alignment, Queue& queue) {
  auto checked = alignment_of(nbytes, alignment);
  ISTHMUS_TRY(checked);
  if (nbytes > SIZE_MAX / 2) {
    return upstream().allocate(nbytes, alignment, queue);  // which reports the error
  }
  const auto unit = device().properties().base_alignment;
  const auto size = (nbytes + unit - 1) / unit * unit;
  auto& arena = arena_of(queue);
  if (auto* block = allocate_from_held(arena, size, *checked, queue)) {
    return static_cast<void*>(block);
  }
  return allocate_from_new(arena, size, *checked, queue);
}

// If no block fits, submits fences: these make blocks that were freed on other queues usable, and
// allow free blocks to be joined.
std::byte* ArenaResource::allocate_from_held(Arena& arena, std::size_t nbytes,
                                             std::size_t alignment, Queue& queue) {
  fences().fence_if_due();
  const auto entry = fences().find(&queue);
  {
    const LockGuard hold{arena.lock};
    auto* const block = arena.allocate(nbytes, alignment, entry, fences());
    if (block != nullptr || !arena.has_free()) {
      return block;
    }
  }
  fences().fence();
  const LockGuard hold{arena.lock};
  arena.coalesce(fences());
  return arena.allocate(nbytes, alignment, entry, fences());
}

Result<ArenaResource::HeldSuperblock> ArenaResource::allocate_superblock(std::size_t nbytes,
                                                                         std::size_t alignment,
                                                                         Queue& queue) {
  Share share{held_, nbytes, limit_};
  if (share.empty()) {
    return fail(ISTHMUS_ERROR_OUT_OF_MEMORY,
                "cannot allocate a superblock of {}: the arenas of this resource hold {} of a "
                "limit of {}, and free memory in the arenas of other threads and queues cannot be "
                "used: free more, raise the limit, or use a pool",
                describe_bytes(nbytes), describe_bytes(held_.load(std::memory_order_relaxed)),
                describe_bytes(limit_));
  }
  auto memory = allocate_chunk(nbytes, alignment, queue);
  ISTHMUS_TRY(memory);
  return HeldSuperblock{std::move(share), {*std::move(memory), nullptr, 0}};
}

Result<ArenaResource::HeldSuperblock> ArenaResource::grow(std::size_t nbytes, std::size_t alignment,
                                                          Queue& queue) {
  const auto preferred_bytes = std::max(nbytes, k_superblock_bytes);
  auto superblock = allocate_superblock(preferred_bytes, alignment, queue);
  if (is_out_of_memory(superblock)) {
    release_unused();
    superblock = allocate_superblock(preferred_bytes, alignment, queue);
  }
  if (is_out_of_memory(superblock) && nbytes != preferred_bytes) {
    superblock = allocate_superblock(nbytes, alignment, queue);
  }
  return superblock;
}

Result<void*> ArenaResource::allocate_from_new(Arena& arena, std::size_t nbytes,
                                               std::size_t alignment, Queue& queue) {
  auto held = grow(nbytes, alignment, queue);
  ISTHMUS_TRY(held);
  const auto base = address(held->superblock.base());
  const auto until = fences().ticket_after(queue.is_known_idle() ? nullptr : &queue);
  const LockGuard hold{lock_};
  auto& added = superblocks_.emplace(base, *std::move(held)).first->second.superblock;
  added.arena = &arena;
  const LockGuard arena_hold{arena.lock};
  arena.add(added);
  auto* const block = arena.allocate(nbytes, alignment, QueueFences::k_no_queue, fences());
  arena.delay_reuse(added, until);  // until then, ordered after earlier uses on `queue` only
  return static_cast<void*>(block);
}

// Obtains the ticket with no lock held, since this may query a driver.
Result<void> ArenaResource::deallocate(void* pointer, std::size_t, Queue* after) noexcept {
  auto* const arena = arena_at(pointer);
  if (arena == nullptr) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "pointer {} was not allocated by this resource: free it through the resource that "
                "allocated it",
                pointer);
  }
  auto found = [&] {
    const LockGuard hold{arena->lock};
    return arena->begin_free(pointer);
  }();
  ISTHMUS_TRY(found);
  const auto& block = (*found)->second;
  const auto freed = ticket_of_free(*block.superblock->memory, pointer, block.nbytes, after);
  const LockGuard hold{arena->lock};
  arena->end_free(*found, freed, fences());
  return {};
}

CutBlock ArenaResource::block_at(const void* pointer) noexcept {
  auto* const arena = arena_at(pointer);
  if (arena == nullptr) {
    return {};
  }
  const LockGuard hold{arena->lock};
  return arena->block_at(pointer);
}

// The memory of the removed superblocks is released after the locks, since `released` is destroyed
// last.
std::size_t ArenaResource::release_free_chunks() noexcept {
  std::map<std::uintptr_t, HeldSuperblock> released;
  std::size_t nbytes = 0;
  const LockGuard hold{lock_};
  for (auto each = superblocks_.begin(); each != superblocks_.end();) {
    auto& superblock = each->second.superblock;
    const auto next = std::next(each);
    const LockGuard arena_hold{superblock.arena->lock};
    if (superblock.arena->remove(superblock, fences())) {
      nbytes += superblock.nbytes();
      released.insert(superblocks_.extract(each));
    }
    each = next;
  }
  return nbytes;
}

}  // namespace isthmus
