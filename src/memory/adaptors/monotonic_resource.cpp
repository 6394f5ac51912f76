// SPDX-License-Identifier: Apache-2.0
#include "memory/adaptors/monotonic_resource.hpp"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <numeric>

#include "core/sizes.hpp"

namespace isthmus {

void* monotonic_resource::cut_of(piece& from, std::size_t nbytes, std::size_t alignment) {
  const auto& whole = from.memory->what();
  const auto base = address(whole.base);
  const auto begin = ((base + from.used + alignment - 1) & ~(alignment - 1)) - base;
  if (begin > whole.nbytes || nbytes > whole.nbytes - begin) {
    return nullptr;
  }
  from.blocks.push_back({begin, nbytes, true});
  from.used = begin + nbytes;
  return static_cast<std::byte*>(whole.base) + begin;
}

// Examines the last few chunks only: a queue whose chunk comes before those of other queues soon
// gets a new one.
void* monotonic_resource::cut(std::size_t nbytes, std::size_t alignment, const queue& on) {
  constexpr int k_most_looks = 8;
  int looks = 0;
  for (auto each = pieces_.rbegin(); each != pieces_.rend() && looks < k_most_looks; ++each) {
    ++looks;
    if (!each->until || each->taken_on == &on || each->until->settled()) {
      ++changes_;
      return cut_of(*each, nbytes, alignment);
    }
  }
  return nullptr;
}

bool monotonic_resource::knows(const queue& on) const noexcept {
  return std::any_of(queues_.rbegin(), queues_.rend(),
                     [&](const ref<queue>& each) { return each.get() == &on; });
}

void monotonic_resource::note(queue& on) {
  if (!knows(on)) {
    queues_.emplace_back(&on);
  }
}

bool monotonic_resource::try_note(queue& on) noexcept try {
  note(on);
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

void* monotonic_resource::allocate_warm(std::size_t nbytes, std::size_t alignment,
                                        queue* on) noexcept try {
  if (nbytes == 0 || !is_plain(alignment, on)) {
    return nullptr;
  }
  const std::lock_guard hold{lock_};
  return knows(*on)
             ? cut(nbytes, alignment != 0 ? alignment : where().properties().base_alignment, *on)
             : nullptr;
} catch (const std::bad_alloc&) {
  return nullptr;
}

// The lock is not held during calls of upstream: threads that need a chunk at once take one each,
// and what is left of all but the last remains unused.
result<void*> monotonic_resource::allocate(std::size_t nbytes, std::size_t alignment, queue& on) {
  auto checked = alignment_of(nbytes, alignment);
  ISTHMUS_TRY(checked);
  std::size_t size = 0;
  {
    const std::lock_guard hold{lock_};
    note(on);
    if (void* made = cut(nbytes, *checked, on)) {
      return made;
    }
    size = std::max(next_bytes_, nbytes);
  }
  auto made = take_chunk(size, *checked, on);
  if (!made && size != nbytes && made.failure().code() == ISTHMUS_ERROR_OUT_OF_MEMORY) {
    size = nbytes;
    made = take_chunk(size, *checked, on);
  }
  ISTHMUS_TRY(made);
  auto until = on.quiet() ? result<ref<event>>{ref<event>{}} : on.pending();
  ISTHMUS_TRY(until);
  piece next{*std::move(made), *std::move(until), &on};
  void* const first = cut_of(next, nbytes, *checked);
  const std::lock_guard hold{lock_};
  pieces_.reserve(pieces_.size() + 1);  // a piece must not be destroyed under the lock
  pieces_.push_back(std::move(next));
  ++changes_;
  next_bytes_ = size <= SIZE_MAX / 2 ? 2 * size : size;
  return first;
}

// The last pieces are the largest, and most blocks lie in them.
monotonic_resource::place monotonic_resource::place_of(const void* pointer) noexcept {
  const auto in = std::find_if(pieces_.rbegin(), pieces_.rend(), [&](const piece& each) {
    return address(pointer) - address(each.memory->what().base) < each.used;
  });
  if (in == pieces_.rend()) {
    return {};
  }
  const auto offset = address(pointer) - address(in->memory->what().base);
  const auto next =
      std::upper_bound(in->blocks.begin(), in->blocks.end(), offset,
                       [](std::size_t wanted, const block& each) { return wanted < each.begin; });
  const bool is_in_one =
      next != in->blocks.begin() && offset - std::prev(next)->begin < std::prev(next)->nbytes;
  return {&*in, is_in_one ? &*std::prev(next) : nullptr};
}

cut_block monotonic_resource::block_at(const void* pointer) noexcept {
  const std::lock_guard hold{lock_};
  const auto found = place_of(pointer);
  if (found.at == nullptr) {
    return {};
  }
  auto* const base = static_cast<std::byte*>(found.in->memory->what().base);
  return {base + found.at->begin, found.at->nbytes, found.at->live};
}

result<void> monotonic_resource::end_block(const void* pointer) noexcept {
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
result<void> monotonic_resource::deallocate(void* pointer, std::size_t, queue* behind) noexcept {
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

void monotonic_resource::release_all() noexcept {
  std::vector<piece> gone;
  std::vector<ref<queue>> used_by;
  {
    const std::lock_guard hold{lock_};
    gone.swap(pieces_);
    used_by.swap(queues_);
    next_bytes_ = first_bytes_;
    ++changes_;
  }
  for (auto& each : gone) {
    const bool told = std::all_of(used_by.begin(), used_by.end(), [&](const ref<queue>& on) {
      return hold_behind(*each.memory, *on);
    });
    if (!told) {
      each.memory.lose();  // rather lost memory than lost data
    }
  }
}

bool monotonic_resource::is_in_use(const piece& of) noexcept {
  return std::any_of(of.blocks.begin(), of.blocks.end(),
                     [](const block& each) { return each.live; });
}

monotonic_resource::seen_queues monotonic_resource::look_at_queues() {
  const std::lock_guard hold{lock_};
  return {queues_, changes_};
}

// Queues are inspected without the lock. After a change meanwhile any chunk may be in use: then all
// stay.
std::size_t monotonic_resource::release_unused() noexcept try {
  const auto seen = look_at_queues();
  if (!std::all_of(seen.all.begin(), seen.all.end(),
                   [](const auto& each) { return each->quiet(); })) {
    return 0;
  }
  std::vector<piece> gone;
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
std::vector<ref<event>> monotonic_resource::running() {
  std::vector<ref<event>> found;
  for (const auto& each : look_at_queues().all) {
    if (!each->lent()) {
      static_cast<void>(each->unfinished(found));
    }
  }
  return found;
}

}  // namespace isthmus
