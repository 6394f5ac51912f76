// SPDX-License-Identifier: Apache-2.0
#include "memory/adaptors/arena_resource.hpp"

#include <algorithm>
#include <iterator>

#include "core/sizes.hpp"
#include "os/thread_id.hpp"

namespace isthmus {

ArenaResource::Share::Share(std::atomic<std::uint64_t>& held, std::uint64_t nbytes,
                            std::uint64_t limit) noexcept
    : held_{held} {
  auto seen = held.load(std::memory_order_relaxed);
  while (seen <= limit && nbytes <= limit - seen) {
    if (held.compare_exchange_weak(seen, seen + nbytes, std::memory_order_relaxed)) {
      nbytes_ = nbytes;
      return;
    }
  }
}

// Successive threads on one queue, and successive queues on one thread, get different arenas.
Arena& ArenaResource::arena_of(const Queue& queue) noexcept {
  constexpr std::uint64_t k_odd = 9;
  return arenas_[(os::thread_id() + k_odd * queue.serial()) % k_arenas];
}

Arena* ArenaResource::arena_at(const void* pointer) noexcept {
  const std::shared_lock hold{lock_};
  const auto behind = superblocks_.upper_bound(address(pointer));
  if (behind == superblocks_.begin()) {
    return nullptr;
  }
  const auto& found = std::prev(behind)->second.what;
  return address(pointer) - address(found.base()) < found.nbytes() ? found.home : nullptr;
}

Result<void*> ArenaResource::allocate(std::size_t nbytes, std::size_t alignment, Queue& queue) {
  auto checked = alignment_of(nbytes, alignment);
  ISTHMUS_TRY(checked);
  if (nbytes > SIZE_MAX / 2) {
    return upstream().allocate(nbytes, alignment, queue);  // which reports the error
  }
  const auto unit = device().properties().base_alignment;
  const auto size = (nbytes + unit - 1) / unit * unit;
  auto& from = arena_of(queue);
  if (auto* made = take_of_known(from, size, *checked, queue)) {
    return static_cast<void*>(made);
  }
  return take_of_new(from, size, *checked, queue);
}

// Fences make blocks usable that were freed on other queues, and allow blocks to be joined.
std::byte* ArenaResource::take_of_known(Arena& arena, std::size_t nbytes, std::size_t alignment,
                                        Queue& queue) {
  slots().fence_if_due();
  const auto whom = slots().find(&queue);
  {
    const std::lock_guard hold{arena.lock};
    auto* const made = arena.take(nbytes, alignment, whom, slots());
    if (made != nullptr || !arena.has_free()) {
      return made;
    }
  }
  slots().fence();
  const std::lock_guard hold{arena.lock};
  arena.join(slots());
  return arena.take(nbytes, alignment, whom, slots());
}

Result<ArenaResource::HeldSuperblock> ArenaResource::take_superblock(std::size_t nbytes,
                                                                     std::size_t alignment,
                                                                     Queue& queue) {
  Share of_limit{held_, nbytes, limit_};
  if (of_limit.empty()) {
    return fail(ISTHMUS_ERROR_OUT_OF_MEMORY,
                "cannot allocate a superblock of {}: the arenas of this resource hold {} of a "
                "limit of {}, and free memory in the arenas of other threads and queues cannot be "
                "used: free more, raise the limit, or use a pool",
                describe_bytes(nbytes), describe_bytes(held_.load(std::memory_order_relaxed)),
                describe_bytes(limit_));
  }
  auto memory = take_chunk(nbytes, alignment, queue);
  ISTHMUS_TRY(memory);
  return HeldSuperblock{std::move(of_limit), {*std::move(memory), nullptr, 0}};
}

Result<ArenaResource::HeldSuperblock> ArenaResource::grow(std::size_t nbytes, std::size_t alignment,
                                                          Queue& queue) {
  const auto usual = std::max(nbytes, k_superblock_bytes);
  auto made = take_superblock(usual, alignment, queue);
  const auto is_short = [&] {
    return !made && made.failure().code() == ISTHMUS_ERROR_OUT_OF_MEMORY;
  };
  if (is_short()) {
    release_unused();
    made = take_superblock(usual, alignment, queue);
  }
  if (is_short() && nbytes != usual) {
    made = take_superblock(nbytes, alignment, queue);
  }
  return made;
}

Result<void*> ArenaResource::take_of_new(Arena& arena, std::size_t nbytes, std::size_t alignment,
                                         Queue& queue) {
  auto made = grow(nbytes, alignment, queue);
  ISTHMUS_TRY(made);
  const auto base = address(made->what.base());
  const auto until = slots().behind(queue.quiet() ? nullptr : &queue);
  const std::lock_guard hold{lock_};
  auto& added = superblocks_.emplace(base, *std::move(made)).first->second.what;
  added.home = &arena;
  const std::lock_guard also{arena.lock};
  arena.add(added);
  auto* const block = arena.take(nbytes, alignment, QueueSlots::k_quiet, slots());
  arena.hold_back(added, until);  // upstream ordered it for this queue alone
  return static_cast<void*>(block);
}

// The ticket is obtained with no lock held, since that may query a driver.
Result<void> ArenaResource::deallocate(void* pointer, std::size_t, Queue* behind) noexcept {
  auto* const home = arena_at(pointer);
  if (home == nullptr) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "pointer {} was not allocated by this resource: free it through the resource that "
                "allocated it",
                pointer);
  }
  auto found = [&] {
    const std::lock_guard hold{home->lock};
    return home->begin_free(pointer);
  }();
  ISTHMUS_TRY(found);
  const auto& block = (*found)->second;
  const auto freed = ticket_of_free(*block.in->memory, pointer, block.nbytes, behind);
  const std::lock_guard hold{home->lock};
  home->end_free(*found, freed, slots());
  return {};
}

CutBlock ArenaResource::block_at(const void* pointer) noexcept {
  auto* const in = arena_at(pointer);
  if (in == nullptr) {
    return {};
  }
  const std::lock_guard hold{in->lock};
  return in->block_at(pointer);
}

// What is taken out is released after the locks.
std::size_t ArenaResource::give_back_whole() noexcept {
  decltype(superblocks_) gone;
  std::size_t nbytes = 0;
  const std::lock_guard hold{lock_};
  for (auto each = superblocks_.begin(); each != superblocks_.end();) {
    auto& what = each->second.what;
    const auto next = std::next(each);
    const std::lock_guard also{what.home->lock};
    if (what.home->remove(what, slots())) {
      nbytes += what.nbytes();
      gone.insert(superblocks_.extract(each));
    }
    each = next;
  }
  return nbytes;
}

}  // namespace isthmus
