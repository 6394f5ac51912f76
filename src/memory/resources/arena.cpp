// SPDX-License-Identifier: Apache-2.0
#include "memory/resources/arena.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/expects.hpp"
#include "core/sizes.hpp"
#include "core/undo.hpp"
#include "memory/base/freed_before.hpp"

namespace isthmus {

bool Arena::Smaller::operator()(const Block* a, const Block* b) const noexcept {
  return std::pair{a->nbytes, address(a->begin)} < std::pair{b->nbytes, address(b->begin)};
}
bool Arena::Smaller::operator()(const Block* a, std::size_t nbytes) const noexcept {
  return a->nbytes < nbytes;
}

void Arena::add(Superblock& superblock) {
  const auto position = blocks_.try_emplace(address(superblock.base())).first;
  Undo rollback{[&] {
    lock.assert_held();
    blocks_.erase(position);
  }};
  auto& block = position->second;
  block.superblock = &superblock;
  block.begin = superblock.base();
  block.nbytes = superblock.nbytes();
  free_.insert(&block);
  rollback.dismiss();
}

void Arena::delay_reuse(const Superblock& superblock, Ticket until) noexcept {
  const auto end = blocks_.lower_bound(address(superblock.base() + superblock.nbytes()));
  for (auto each = blocks_.lower_bound(address(superblock.base())); each != end; ++each) {
    each->second.freed = until;
  }
}

// Splits a free block after its first `first` bytes; both parts are free afterwards.
void Arena::split(Blocks::iterator position, std::size_t first) {
  auto& block = position->second;
  ISTHMUS_EXPECTS(block.state == Block::free);
  ISTHMUS_EXPECTS(0 < first && first < block.nbytes, first, block.nbytes);
  const auto added = blocks_.try_emplace(address(block.begin + first)).first;
  Undo rollback{[&] {
    lock.assert_held();
    blocks_.erase(added);
  }};
  auto& remainder = added->second;
  remainder.superblock = block.superblock;
  remainder.begin = block.begin + first;
  remainder.nbytes = block.nbytes - first;
  remainder.freed = block.freed;
  free_.insert(&remainder);
  rollback.dismiss();
  auto node = free_.extract(&block);
  block.nbytes = first;
  free_.insert(std::move(node));
}

std::byte* Arena::allocate(std::size_t nbytes, std::size_t alignment, QueueFences::EntryIndex entry,
                           const QueueFences& fences) {
  const auto padding_of = [alignment](const Block& at) {
    return (0 - address(at.begin)) & (alignment - 1);
  };
  const auto fits = [&](const Block* each) {
    return padding_of(*each) <= each->nbytes - nbytes && fences.is_usable(each->freed, entry);
  };
  const auto found = std::find_if(free_.lower_bound<std::size_t>(nbytes), free_.end(), fits);
  if (found == free_.end()) {
    return nullptr;
  }
  auto at = blocks_.find(address((*found)->begin));
  if (const auto padding = padding_of(at->second); padding != 0) {
    split(at, padding);
    ++at;
  }
  if (at->second.nbytes != nbytes) {
    split(at, nbytes);
  }
  auto& block = at->second;
  block.node = free_.extract(&block);
  block.state = Block::live;
  block.superblock->live_bytes += nbytes;
  return block.begin;
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
  const auto& block = at->second;
  return {block.begin, block.nbytes, block.state == Block::live};
}

Result<Arena::Blocks::iterator> Arena::begin_free(const void* pointer) noexcept {
  const auto at = find(pointer);
  if (at == blocks_.end()) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "pointer {} was not allocated by this resource: free it through the resource that "
                "allocated it",
                pointer);
  }
  auto& block = at->second;
  if (block.state != Block::live) {
    return freed_before(pointer);
  }
  if (block.begin != pointer) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "{} lies inside a block of this resource: free the pointer that was allocated",
                pointer);
  }
  block.state = Block::freeing;
  return at;
}

void Arena::end_free(Blocks::iterator position, Ticket freed, QueueFences& fences) noexcept {
  auto& block = position->second;
  block.freed = freed;
  block.state = Block::free;
  block.superblock->live_bytes -= block.nbytes;
  free_.insert(std::move(block.node));
  if (const auto next = std::next(position); can_coalesce(position, next, fences)) {
    coalesce(position, next, fences);
  }
  if (position != blocks_.begin() && can_coalesce(std::prev(position), position, fences)) {
    coalesce(std::prev(position), position, fences);
  }
}

bool Arena::can_coalesce(Blocks::iterator first, Blocks::iterator second,
                         const QueueFences& fences) const noexcept {
  if (second == blocks_.end()) {
    return false;
  }
  const auto& a = first->second;
  const auto& b = second->second;
  return a.superblock == b.superblock && a.state == Block::free && b.state == Block::free &&
         fences.joins(a.freed, b.freed);
}

void Arena::coalesce(Blocks::iterator first, Blocks::iterator second,
                     QueueFences& fences) noexcept {
  auto& merged = first->second;
  auto node = free_.extract(&merged);
  free_.erase(&second->second);
  merged.freed = fences.joined(merged.freed, second->second.freed);
  merged.nbytes += second->second.nbytes;
  free_.insert(std::move(node));
  blocks_.erase(second);
}

void Arena::coalesce(QueueFences& fences) noexcept {
  for (auto each = blocks_.begin(); each != blocks_.end();) {
    if (const auto next = std::next(each); can_coalesce(each, next, fences)) {
      coalesce(each, next, fences);
    } else {
      each = next;
    }
  }
}

bool Arena::remove(Superblock& superblock, const QueueFences& fences) noexcept {
  const auto begin = blocks_.lower_bound(address(superblock.base()));
  const auto end = blocks_.lower_bound(address(superblock.base() + superblock.nbytes()));
  const bool is_free = superblock.live_bytes == 0 && std::all_of(begin, end, [&](const auto& each) {
                         return fences.passed(each.second.freed);
                       });
  if (is_free) {
    for (auto each = begin; each != end; ++each) {
      free_.erase(&each->second);
    }
    blocks_.erase(begin, end);
  }
  return is_free;
}

}  // namespace isthmus
