// SPDX-License-Identifier: Apache-2.0
#include "memory/adaptors/monotonic_resource.hpp"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <numeric>

#include "core/sizes.hpp"

namespace isthmus {

void* MonotonicResource::cut_of(Piece& source, std::size_t nbytes, std::size_t alignment) {
  const auto& whole = source.memory->what();
  const auto base = address(whole.base);
  const auto begin = ((base + source.used + alignment - 1) & ~(alignment - 1)) - base;
  if (begin > whole.nbytes || nbytes > whole.nbytes - begin) {
    return nullptr;
  }
  source.blocks.push_back({begin, nbytes, true});
  source.used = begin + nbytes;
  return static_cast<std::byte*>(whole.base) + begin;
}

// Examines the last few chunks only: a queue whose chunk comes before those of other queues soon
// gets a new one.
void* MonotonicResource::cut(std::size_t nbytes, std::size_t alignment, const Queue& queue) {
  constexpr int k_most_looks = 8;
  int looks = 0;
  for (auto each = pieces_.rbegin(); each != pieces_.rend() && looks < k_most_looks; ++each) {
    ++looks;
    if (!each->until || each->taken_on == &queue || each->until->settled()) {
      ++changes_;
      return cut_of(*each, nbytes, alignment);
    }
  }
  return nullptr;
}

bool MonotonicResource::knows(const Queue& queue) const noexcept {
  return std::any_of(queues_.rbegin(), queues_.rend(),
                     [&](const Ref<Queue>& each) { return each.get() == &queue; });
}

void MonotonicResource::note(Queue& queue) {
  if (!knows(queue)) {
    queues_.emplace_back(&queue);
  }
}

bool MonotonicResource::try_note(Queue& queue) noexcept try {
  note(queue);
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

void* MonotonicResource::allocate_warm(std::size_t nbytes, std::size_t alignment,
                                       Queue* queue) noexcept try {
  if (nbytes == 0 || !is_plain(alignment, queue)) {
    return nullptr;
  }
  const std::lock_guard hold{lock_};
  return knows(*queue)
             ? cut(nbytes, alignment != 0 ? alignment : device().properties().base_alignment,
                   *queue)
             : nullptr;
} catch (const std::bad_alloc&) {
  return nullptr;
}

// The lock is not held during calls of upstream: threads that need a chunk at once take one each,
// and what is left of all but the last remains unused.
Result<void*> MonotonicResource::allocate(std::size_t nbytes, std::size_t alignment, Queue& queue) {
  auto checked = alignment_of(nbytes, alignment);
  ISTHMUS_TRY(checked);
  std::size_t size = 0;
  {
    const std::lock_guard hold{lock_};
    note(queue);
    if (void* made = cut(nbytes, *checked, queue)) {
      return made;
    }
    size = std::max(next_bytes_, nbytes);
  }
  auto made = take_chunk(size, *checked, queue);
  if (!made && size != nbytes && made.failure().code() == ISTHMUS_ERROR_OUT_OF_MEMORY) {
    size = nbytes;
    made = take_chunk(size, *checked, queue);
  }
  ISTHMUS_TRY(made);
  auto until = queue.quiet() ? Result<Ref<Event>>{Ref<Event>{}} : queue.pending();
  ISTHMUS_TRY(until);
  Piece next{*std::move(made), *std::move(until), &queue};
  void* const first = cut_of(next, nbytes, *checked);
  const std::lock_guard hold{lock_};
  pieces_.reserve(pieces_.size() + 1);  // a piece must not be destroyed under the lock
  pieces_.push_back(std::move(next));
  ++changes_;
  next_bytes_ = size <= SIZE_MAX / 2 ? 2 * size : size;
  return first;
}

// The last pieces are the largest, and most blocks lie in them.
MonotonicResource::Place MonotonicResource::place_of(const void* pointer) noexcept {
  const auto in = std::find_if(pieces_.rbegin(), pieces_.rend(), [&](const Piece& each) {
    return address(pointer) - address(each.memory->what().base) < each.used;
  });
  if (in == pieces_.rend()) {
    return {};
  }
  const auto offset = address(pointer) - address(in->memory->what().base);
  const auto next =
      std::upper_bound(in->blocks.begin(), in->blocks.end(), offset,
                       [](std::size_t wanted, const Block& each) { return wanted < each.begin; });
  const bool is_in_one =
      next != in->blocks.begin() && offset - std::prev(next)->begin < std::prev(next)->nbytes;
  return {&*in, is_in_one ? &*std::prev(next) : nullptr};
}

CutBlock MonotonicResource::block_at(const void* pointer) noexcept {
  const std::lock_guard hold{lock_};
  const auto found = place_of(pointer);
  if (found.at == nullptr) {
    return {};
  }
  auto* const base = static_cast<std::byte*>(found.in->memory->what().base);
  return {base + found.at->begin, found.at->nbytes, found.at->live};
}

Result<void> MonotonicResource::end_block(const void* pointer) noexcept {
  const auto found = place_of(pointer);
  if (found.at == nullptr) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "pointer {} was not allocated by this resource, or was released", pointer);
  }
  if (address(found.in->memory->what().base) + found.at->begin != address(pointer)) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "{} lies inside a block of this resource: free the pointer that was allocated",
                pointer);
  }
  if (!found.at->live) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "{} was freed before", pointer);
  }
  found.at->live = false;
  ++changes_;
  return {};
}

// A block is live until what still uses it is recorded or has ended.
Result<void> MonotonicResource::deallocate(void* pointer, std::size_t, Queue* behind) noexcept {
  {
    const std::lock_guard hold{lock_};
    if (behind == nullptr || try_note(*behind)) {
      return end_block(pointer);
    }
  }
  ISTHMUS_TRY(wait_for(*behind));
  const std::lock_guard hold{lock_};
  return end_block(pointer);
}

void MonotonicResource::release_all() noexcept {
  std::vector<Piece> gone;
  std::vector<Ref<Queue>> used_by;
  {
    const std::lock_guard hold{lock_};
    gone.swap(pieces_);
    used_by.swap(queues_);
    next_bytes_ = first_bytes_;
    ++changes_;
  }
  for (auto& each : gone) {
    const bool told = std::all_of(used_by.begin(), used_by.end(), [&](const Ref<Queue>& queue) {
      return hold_behind(*each.memory, *queue);
    });
    if (!told) {
      each.memory.lose();  // rather lost memory than lost data
    }
  }
}

bool MonotonicResource::is_in_use(const Piece& piece) noexcept {
  return std::any_of(piece.blocks.begin(), piece.blocks.end(),
                     [](const Block& each) { return each.live; });
}

MonotonicResource::SeenQueues MonotonicResource::look_at_queues() {
  const std::lock_guard hold{lock_};
  return {queues_, changes_};
}

// Queues are inspected without the lock. After a change meanwhile any chunk may be in use: then all
// stay.
std::size_t MonotonicResource::release_unused() noexcept try {
  const auto seen = look_at_queues();
  if (!std::all_of(seen.all.begin(), seen.all.end(),
                   [](const auto& each) { return each->quiet(); })) {
    return 0;
  }
  std::vector<Piece> gone;
  const std::lock_guard hold{lock_};
  if (changes_ != seen.changes) {
    return 0;
  }
  const auto unused = std::stable_partition(pieces_.begin(), pieces_.end(), is_in_use);
  gone.assign(std::move_iterator{unused}, std::move_iterator{pieces_.end()});
  pieces_.erase(unused, pieces_.end());
  next_bytes_ = pieces_.empty() ? first_bytes_ : next_bytes_;
  return std::accumulate(gone.begin(), gone.end(), std::size_t{0}, [](auto sum, const auto& each) {
    return sum + each.memory->what().nbytes;
  });
} catch (const std::bad_alloc&) {
  return 0;
}

// Queues whose handle was exported are not queried: their streams may be destroyed.
std::vector<Ref<Event>> MonotonicResource::running() {
  std::vector<Ref<Event>> found;
  for (const auto& each : look_at_queues().all) {
    if (!each->lent()) {
      static_cast<void>(each->unfinished(found));
    }
  }
  return found;
}

}  // namespace isthmus
