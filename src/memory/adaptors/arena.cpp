// SPDX-License-Identifier: Apache-2.0
#include "memory/adaptors/arena.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/sizes.hpp"
#include "core/undo.hpp"

namespace isthmus {

bool arena::smaller::operator()(const block* a, const block* b) const noexcept {
  return std::pair{a->nbytes, address(a->begin)} < std::pair{b->nbytes, address(b->begin)};
}
bool arena::smaller::operator()(const block* a, std::size_t nbytes) const noexcept {
  return a->nbytes < nbytes;
}

void arena::add(superblock& whole) {
  const auto made = blocks_.try_emplace(address(whole.base())).first;
  undo forget{[&] { blocks_.erase(made); }};
  auto& only = made->second;
  only.in = &whole;
  only.begin = whole.base();
  only.nbytes = whole.nbytes();
  free_.insert(&only);
  forget.dismiss();
}

void arena::hold_back(const superblock& in, ticket until) noexcept {
  const auto end = blocks_.lower_bound(address(in.base() + in.nbytes()));
  for (auto each = blocks_.lower_bound(address(in.base())); each != end; ++each) {
    each->second.freed = until;
  }
}

// Pre: `whole` is free. Both parts are free afterwards.
void arena::split(blocks::iterator whole, std::size_t first) {
  auto& from = whole->second;
  const auto made = blocks_.try_emplace(address(from.begin + first)).first;
  undo forget{[&] { blocks_.erase(made); }};
  auto& rest = made->second;
  rest.in = from.in;
  rest.begin = from.begin + first;
  rest.nbytes = from.nbytes - first;
  rest.freed = from.freed;
  free_.insert(&rest);
  forget.dismiss();
  auto place = free_.extract(&from);
  from.nbytes = first;
  free_.insert(std::move(place));
}

std::byte* arena::take(std::size_t nbytes, std::size_t alignment, queue_slots::slot whom,
                       const queue_slots& slots) {
  const auto gap_in = [alignment](const block& at) {
    return (0 - address(at.begin)) & (alignment - 1);
  };
  const auto fits = [&](const block* each) {
    return gap_in(*each) <= each->nbytes - nbytes && slots.good(each->freed, whom);
  };
  const auto found = std::find_if(free_.lower_bound<std::size_t>(nbytes), free_.end(), fits);
  if (found == free_.end()) {
    return nullptr;
  }
  auto at = blocks_.find(address((*found)->begin));
  if (const auto gap = gap_in(at->second); gap != 0) {
    split(at, gap);
    ++at;
  }
  if (at->second.nbytes != nbytes) {
    split(at, nbytes);
  }
  auto& taken = at->second;
  taken.place = free_.extract(&taken);
  taken.state = block::live;
  taken.in->out += nbytes;
  return taken.begin;
}

arena::blocks::iterator arena::find(const void* pointer) noexcept {
  auto at = blocks_.upper_bound(address(pointer));
  return at == blocks_.begin() || address(pointer) - (--at)->first >= at->second.nbytes
             ? blocks_.end()
             : at;
}

cut_block arena::block_at(const void* pointer) noexcept {
  const auto at = find(pointer);
  if (at == blocks_.end()) {
    return {};
  }
  const auto& found = at->second;
  return {found.begin, found.nbytes, found.state == block::live};
}

result<arena::blocks::iterator> arena::begin_free(const void* pointer) noexcept {
  const auto at = find(pointer);
  if (at == blocks_.end()) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "pointer {} was not allocated by this resource: free it through the resource that "
                "allocated it",
                pointer);
  }
  auto& found = at->second;
  if (found.state != block::live) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "{} was freed before", pointer);
  }
  if (found.begin != pointer) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "{} lies inside a block of this resource: free the pointer that was allocated",
                pointer);
  }
  found.state = block::leaving;
  return at;
}

void arena::end_free(blocks::iterator gone, ticket freed, queue_slots& slots) noexcept {
  auto& back = gone->second;
  back.freed = freed;
  back.state = block::free;
  back.in->out -= back.nbytes;
  free_.insert(std::move(back.place));
  if (const auto next = std::next(gone); can_join(gone, next, slots)) {
    join(gone, next, slots);
  }
  if (gone != blocks_.begin() && can_join(std::prev(gone), gone, slots)) {
    join(std::prev(gone), gone, slots);
  }
}

bool arena::can_join(blocks::iterator first, blocks::iterator second,
                     const queue_slots& slots) const noexcept {
  if (second == blocks_.end()) {
    return false;
  }
  const auto& a = first->second;
  const auto& b = second->second;
  return a.in == b.in && a.state == block::free && b.state == block::free &&
         slots.joins(a.freed, b.freed);
}

void arena::join(blocks::iterator first, blocks::iterator second, queue_slots& slots) noexcept {
  auto& whole = first->second;
  auto place = free_.extract(&whole);
  free_.erase(&second->second);
  whole.freed = slots.joined(whole.freed, second->second.freed);
  whole.nbytes += second->second.nbytes;
  free_.insert(std::move(place));
  blocks_.erase(second);
}

void arena::join(queue_slots& slots) noexcept {
  for (auto each = blocks_.begin(); each != blocks_.end();) {
    if (const auto next = std::next(each); can_join(each, next, slots)) {
      join(each, next, slots);
    } else {
      each = next;
    }
  }
}

bool arena::remove(superblock& whole, const queue_slots& slots) noexcept {
  const auto begin = blocks_.lower_bound(address(whole.base()));
  const auto end = blocks_.lower_bound(address(whole.base() + whole.nbytes()));
  const bool is_over = whole.out == 0 && std::all_of(begin, end, [&](const auto& each) {
                         return slots.passed(each.second.freed);
                       });
  if (is_over) {
    std::for_each(begin, end, [&](auto& each) { free_.erase(&each.second); });
    blocks_.erase(begin, end);
  }
  return is_over;
}

}  // namespace isthmus
