// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/slab_list.hpp"

#include <algorithm>
#include <bit>

#include "core/expects.hpp"

namespace isthmus {
namespace {

// Takes as many blocks as the bitmap has and `out` can hold.
std::size_t take_bits(const Slab& slab, std::uint64_t* bitmap, std::span<void*> out) noexcept {
  std::size_t taken = 0;
  for (std::size_t word = 0; word < slab.words() && taken < out.size(); ++word) {
    while (bitmap[word] != 0 && taken < out.size()) {
      const auto bit = static_cast<std::size_t>(std::countr_zero(bitmap[word]));
      bitmap[word] &= bitmap[word] - 1;
      out[taken++] = slab.address_of(word * 64 + bit);
    }
  }
  return taken;
}

}  // namespace

// Waiting slabs are sorted, the longest waiting first.
void SlabList::link(Slab& slab, std::size_t list) noexcept {
  if (list == k_unlisted) {
    return;
  }
  const bool at_the_end = list == k_waiting && last_waiting_ != nullptr;
  slab.previous = at_the_end ? last_waiting_ : nullptr;
  slab.next = at_the_end ? nullptr : first_.at(list);
  (at_the_end ? last_waiting_->next : first_.at(list)) = &slab;
  if (slab.next != nullptr) {
    slab.next->previous = &slab;
  }
  if (list == k_waiting) {
    last_waiting_ = &slab;
  }
}

void SlabList::unlink(Slab& slab, std::size_t list) noexcept {
  if (list == k_unlisted) {
    return;
  }
  if (list == k_waiting && last_waiting_ == &slab) {
    last_waiting_ = slab.previous;
  }
  (slab.previous == nullptr ? first_.at(list) : slab.previous->next) = slab.next;
  if (slab.next != nullptr) {
    slab.next->previous = slab.previous;
  }
}

void SlabList::move(Slab& slab, std::size_t old_list) noexcept {
  if (const auto new_list = list_of(slab); new_list != old_list) {
    unlink(slab, old_list);
    link(slab, new_list);
  }
}

std::size_t SlabList::add(Slab& slab, std::span<void*> out) noexcept {
  const bool waits = slab.waiting != 0;
  const auto taken = take_bits(slab, waits ? slab.waiting_bitmap() : slab.free_bitmap(), out);
  (waits ? slab.waiting : slab.free_count) -= static_cast<std::uint32_t>(taken);
  link(slab, list_of(slab));
  return taken;
}

void SlabList::poison_waiting(Slab& slab) const noexcept {
  for (std::uint32_t block = 0; poison_.is_enabled() && block < slab.blocks; ++block) {
    if ((slab.waiting_bitmap()[block / 64] >> block % 64 & 1) != 0) {
      poison_.apply(slab.address_of(block), slab.block_bytes);
    }
  }
}

// Makes the waiting blocks free.
void SlabList::free_waiting(Slab& slab) const noexcept {
  ISTHMUS_EXPECTS(fences_->passed(slab.until));
  poison_waiting(slab);
  for (std::size_t word = 0; word < slab.words(); ++word) {
    slab.free_bitmap()[word] |= std::exchange(slab.waiting_bitmap()[word], 0);
  }
  slab.free_count += std::exchange(slab.waiting, 0);
  slab.until = {};
}

TakenBlocks SlabList::take_waiting(std::span<void*> out, QueueFences::EntryIndex entry) noexcept {
  TakenBlocks result;
  auto& taken = result.count;
  auto* next = first_[k_waiting];
  for (int examined = 0; next != nullptr && taken < out.size() && examined < k_max_examined;
       ++examined) {
    auto& slab = *std::exchange(next, next->next);
    if (fences_->passed(slab.until)) {
      const bool is_from_other = is_from_other_queue(slab.until, entry);
      free_waiting(slab);
      const auto more = take_bits(slab, slab.free_bitmap(), out.subspan(taken));
      result.from_other_queue |= is_from_other ? TakenBlocks::bits(taken, more) : 0;
      slab.free_count -= static_cast<std::uint32_t>(more);
      taken += more;
    } else if (slab.until.entry() == entry) {
      const auto more = take_bits(slab, slab.waiting_bitmap(), out.subspan(taken));
      slab.waiting -= static_cast<std::uint32_t>(more);
      taken += more;
    }
    move(slab, k_waiting);
  }
  return result;
}

TakenBlocks SlabList::take(std::span<void*> out, QueueFences::EntryIndex entry) noexcept {
  std::size_t taken = 0;
  for (std::size_t grade = 0; grade < k_grades; ++grade) {
    while (first_.at(grade) != nullptr && taken < out.size()) {
      auto& slab = *first_.at(grade);
      const auto more = take_bits(slab, slab.free_bitmap(), out.subspan(taken));
      slab.free_count -= static_cast<std::uint32_t>(more);
      taken += more;
      move(slab, grade);
    }
  }
  return taken != 0 ? TakenBlocks{taken} : take_waiting(out, entry);
}

bool SlabList::has(QueueFences::EntryIndex entry) const noexcept {
  if (std::any_of(first_.begin(), first_.begin() + k_grades,
                  [](const Slab* each) { return each != nullptr; })) {
    return true;
  }
  const auto* next = first_[k_waiting];
  for (int examined = 0; next != nullptr && examined < k_max_examined; ++examined) {
    if (fences_->is_usable(next->until, entry)) {
      return true;
    }
    next = next->next;
  }
  return false;
}

Slab* SlabList::return_block(Slab& slab, void* block, Ticket freed) noexcept {
  const auto number = slab.block_at(block);
  const auto bit = std::uint64_t{1} << number % 64;
  const auto old_list = list_of(slab);
  if (slab.waiting != 0 && fences_->passed(slab.until)) {
    free_waiting(slab);
  }
  if (fences_->passed(freed)) {
    poison_.apply(block, slab.block_bytes);
    slab.free_bitmap()[number / 64] |= bit;
    ++slab.free_count;
  } else {
    slab.waiting_bitmap()[number / 64] |= bit;
    slab.until = slab.waiting == 0 ? freed : fences_->joined(slab.until, freed);
    ++slab.waiting;
  }
  if (slab.is_unused()) {
    unlink(slab, old_list);
    return &slab;
  }
  move(slab, old_list);
  return nullptr;
}

Slab* SlabList::take_unused_slab() noexcept {
  for (const auto list : {k_grades - 1, k_waiting}) {
    for (auto* each = first_.at(list); each != nullptr; each = each->next) {
      if (each->is_unused()) {
        unlink(*each, list);
        return each;
      }
    }
  }
  return nullptr;
}

const Slab* SlabList::find_damaged() const noexcept {
  const auto is_sound = [](Slab& slab, std::size_t list) {
    std::uint32_t free_count = 0;
    std::uint32_t waiting = 0;
    bool are_disjoint = true;
    for (std::size_t word = 0; word < slab.words(); ++word) {
      free_count += static_cast<std::uint32_t>(std::popcount(slab.free_bitmap()[word]));
      waiting += static_cast<std::uint32_t>(std::popcount(slab.waiting_bitmap()[word]));
      are_disjoint = are_disjoint && (slab.free_bitmap()[word] & slab.waiting_bitmap()[word]) == 0;
    }
    for (std::uint32_t block = 0; block < slab.blocks; ++block) {
      const auto own = slab.free_bitmap()[block / 64] | slab.waiting_bitmap()[block / 64];
      are_disjoint = are_disjoint && !((own >> block % 64 & 1) != 0 && slab.is_live(block));
    }
    return are_disjoint && list_of(slab) == list && free_count == slab.free_count &&
           waiting == slab.waiting;
  };
  for (std::size_t list = 0; list <= k_waiting; ++list) {
    const Slab* before = nullptr;
    for (auto* each = first_.at(list); each != nullptr; each = each->next) {
      if (each->previous != before || !is_sound(*each, list)) {
        return each;
      }
      before = each;
    }
  }
  return nullptr;
}

}  // namespace isthmus
