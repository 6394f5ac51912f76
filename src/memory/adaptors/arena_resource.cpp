// SPDX-License-Identifier: Apache-2.0
#include "memory/adaptors/arena_resource.hpp"

#include <algorithm>
#include <iterator>

#include "core/sizes.hpp"
#include "os/thread_id.hpp"

namespace isthmus {

arena_resource::share::share(std::atomic<std::uint64_t>& held, std::uint64_t nbytes,
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
arena& arena_resource::arena_of(const queue& on) noexcept {
  constexpr std::uint64_t k_odd = 9;
  return arenas_[(os::thread_id() + k_odd * on.serial()) % k_arenas];
}

arena* arena_resource::arena_at(const void* pointer) noexcept {
  const std::shared_lock hold{lock_};
  const auto behind = superblocks_.upper_bound(address(pointer));
  if (behind == superblocks_.begin()) {
    return nullptr;
  }
  const auto& found = std::prev(behind)->second.what;
  return address(pointer) - address(found.base()) < found.nbytes() ? found.home : nullptr;
}

result<void*> arena_resource::allocate(std::size_t nbytes, std::size_t alignment, queue& on) {
  auto checked = alignment_of(nbytes, alignment);
  ISTHMUS_TRY(checked);
  if (nbytes > SIZE_MAX / 2) {
    return upstream().allocate(nbytes, alignment, on);  // which reports the error
  }
  const auto unit = where().properties().base_alignment;
  const auto size = (nbytes + unit - 1) / unit * unit;
  auto& from = arena_of(on);
  if (auto* made = take_of_known(from, size, *checked, on)) {
    return static_cast<void*>(made);
  }
  return take_of_new(from, size, *checked, on);
}

// Fences make blocks usable that were freed on other queues, and allow blocks to be joined.
std::byte* arena_resource::take_of_known(arena& from, std::size_t nbytes, std::size_t alignment,
                                         queue& on) {
  slots().fence_if_due();
  const auto whom = slots().find(&on);
  {
    const std::lock_guard hold{from.lock};
    auto* const made = from.take(nbytes, alignment, whom, slots());
    if (made != nullptr || !from.has_free()) {
      return made;
    }
  }
  slots().fence();
  const std::lock_guard hold{from.lock};
  from.join(slots());
  return from.take(nbytes, alignment, whom, slots());
}

result<arena_resource::held_superblock> arena_resource::take_superblock(std::size_t nbytes,
                                                                        std::size_t alignment,
                                                                        queue& on) {
  share of_limit{held_, nbytes, limit_};
  if (of_limit.empty()) {
    return fail(ISTHMUS_ERROR_OUT_OF_MEMORY,
                "cannot allocate a superblock of {}: the arenas of this resource hold {} of a "
                "limit of {}, and free memory in the arenas of other threads and queues cannot be "
                "used: free more, raise the limit, or use a pool",
                describe_bytes(nbytes), describe_bytes(held_.load(std::memory_order_relaxed)),
                describe_bytes(limit_));
  }
  auto memory = take_chunk(nbytes, alignment, on);
  ISTHMUS_TRY(memory);
  return held_superblock{std::move(of_limit), {*std::move(memory), nullptr, 0}};
}

result<arena_resource::held_superblock> arena_resource::grow(std::size_t nbytes,
                                                             std::size_t alignment, queue& on) {
  const auto usual = std::max(nbytes, k_superblock_bytes);
  auto made = take_superblock(usual, alignment, on);
  const auto is_short = [&] {
    return !made && made.failure().code() == ISTHMUS_ERROR_OUT_OF_MEMORY;
  };
  if (is_short()) {
    release_unused();
    made = take_superblock(usual, alignment, on);
  }
  if (is_short() && nbytes != usual) {
    made = take_superblock(nbytes, alignment, on);
  }
  return made;
}

result<void*> arena_resource::take_of_new(arena& from, std::size_t nbytes, std::size_t alignment,
                                          queue& on) {
  auto made = grow(nbytes, alignment, on);
  ISTHMUS_TRY(made);
  const auto base = address(made->what.base());
  const auto until = slots().behind(on.quiet() ? nullptr : &on);
  const std::lock_guard hold{lock_};
  auto& added = superblocks_.emplace(base, *std::move(made)).first->second.what;
  added.home = &from;
  const std::lock_guard also{from.lock};
  from.add(added);
  auto* const block = from.take(nbytes, alignment, queue_slots::k_quiet, slots());
  from.hold_back(added, until);  // upstream ordered it for this queue alone
  return static_cast<void*>(block);
}

// The ticket is obtained with no lock held, since that may query a driver.
result<void> arena_resource::deallocate(void* pointer, std::size_t, queue* behind) noexcept {
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

cut_block arena_resource::block_at(const void* pointer) noexcept {
  auto* const in = arena_at(pointer);
  if (in == nullptr) {
    return {};
  }
  const std::lock_guard hold{in->lock};
  return in->block_at(pointer);
}

// What is taken out is released after the locks.
std::size_t arena_resource::give_back_whole() noexcept {
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
