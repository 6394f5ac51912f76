// SPDX-License-Identifier: Apache-2.0
#include "memory/adaptors/arena.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/sizes.hpp"
#include "core/undo.hpp"

namespace isthmus {

bool Arena::Smaller::operator()(const Block* a, const Block* b) const noexcept {
  return std::pair{a->nbytes, address(a->begin)} < std::pair{b->nbytes, address(b->begin)};
}
bool Arena::Smaller::operator()(const Block* a, std::size_t nbytes) const noexcept {
  return a->nbytes < nbytes;
}

void Arena::add(Superblock& whole) {
  const auto made = blocks_.try_emplace(address(whole.base())).first;
  Undo forget{[&] { blocks_.erase(made); }};
  auto& only = made->second;
  only.in = &whole;
  only.begin = whole.base();
  only.nbytes = whole.nbytes();
  free_.insert(&only);
  forget.dismiss();
}

void Arena::hold_back(const Superblock& in, Ticket until) noexcept {
  const auto end = blocks_.lower_bound(address(in.base() + in.nbytes()));
  for (auto each = blocks_.lower_bound(address(in.base())); each != end; ++each) {
    each->second.freed = until;
  }
}

// Pre: `whole` is free. Both parts are free afterwards.
void Arena::split(Blocks::iterator whole, std::size_t first) {
  auto& from = whole->second;
  const auto made = blocks_.try_emplace(address(from.begin + first)).first;
  Undo forget{[&] { blocks_.erase(made); }};
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

std::byte* Arena::take(std::size_t nbytes, std::size_t alignment, QueueSlots::Slot slot,
                       const QueueSlots& slots) {
  const auto gap_in = [alignment](const Block& at) {
    return (0 - address(at.begin)) & (alignment - 1);
  };
  const auto fits = [&](const Block* each) {
    return gap_in(*each) <= each->nbytes - nbytes && slots.good(each->freed, slot);
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
  taken.state = Block::live;
  taken.in->out += nbytes;
  return taken.begin;
}

Arena::Blocks::iterator Arena::find(const void* pointer) noexcept {
  auto at = blocks_.upper_bound(address(pointer));
  return at == blocks_.begin() || address(pointer) - (--at)->first >= at->second.nbytes
             ? blocks_.end()
             : at;
}

CutBlock Arena::block_at(const void* pointer) noexcept {
  const auto at = find(pointer);
  if (at == blocks_.end()) {
    return {};
  }
  const auto& found = at->second;
  return {found.begin, found.nbytes, found.state == Block::live};
}

Result<Arena::Blocks::iterator> Arena::begin_free(const void* pointer) noexcept {
  const auto at = find(pointer);
  if (at == blocks_.end()) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "pointer {} was not allocated by this resource: free it through the resource that "
                "allocated it",
                pointer);
  }
  auto& found = at->second;
  if (found.state != Block::live) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "{} was freed before", pointer);
  }
  if (found.begin != pointer) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "{} lies inside a block of this resource: free the pointer that was allocated",
                pointer);
  }
  found.state = Block::leaving;
  return at;
}

void Arena::end_free(Blocks::iterator gone, Ticket freed, QueueSlots& slots) noexcept {
  auto& back = gone->second;
  back.freed = freed;
  back.state = Block::free;
  back.in->out -= back.nbytes;
  free_.insert(std::move(back.place));
  if (const auto next = std::next(gone); can_join(gone, next, slots)) {
    join(gone, next, slots);
  }
  if (gone != blocks_.begin() && can_join(std::prev(gone), gone, slots)) {
    join(std::prev(gone), gone, slots);
  }
}

bool Arena::can_join(Blocks::iterator first, Blocks::iterator second,
                     const QueueSlots& slots) const noexcept {
  if (second == blocks_.end()) {
    return false;
  }
  const auto& a = first->second;
  const auto& b = second->second;
  return a.in == b.in && a.state == Block::free && b.state == Block::free &&
         slots.joins(a.freed, b.freed);
}

void Arena::join(Blocks::iterator first, Blocks::iterator second, QueueSlots& slots) noexcept {
  auto& whole = first->second;
  auto place = free_.extract(&whole);
  free_.erase(&second->second);
  whole.freed = slots.joined(whole.freed, second->second.freed);
  whole.nbytes += second->second.nbytes;
  free_.insert(std::move(place));
  blocks_.erase(second);
}

void Arena::join(QueueSlots& slots) noexcept {
  for (auto each = blocks_.begin(); each != blocks_.end();) {
    if (const auto next = std::next(each); can_join(each, next, slots)) {
      join(each, next, slots);
    } else {
      each = next;
    }
  }
}

bool Arena::remove(Superblock& whole, const QueueSlots& slots) noexcept {
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
