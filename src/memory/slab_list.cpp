// SPDX-License-Identifier: Apache-2.0
#include "memory/slab_list.hpp"

#include <algorithm>
#include <bit>

namespace isthmus {
namespace {

// Takes as many blocks from a bitmap as it has and `out` can hold.
std::size_t take_bits(const Slab& slab, std::uint64_t* words, std::span<void*> out) noexcept {
  std::size_t taken = 0;
  for (std::size_t word = 0; word < slab.words() && taken < out.size(); ++word) {
    while (words[word] != 0 && taken < out.size()) {
      const auto bit = static_cast<std::size_t>(std::countr_zero(words[word]));
      words[word] &= words[word] - 1;
      out[taken++] = slab.address_of(word * 64 + bit);
    }
  }
  return taken;
}

}  // namespace

// Waiting slabs are sorted, the longest waiting first.
void SlabList::link(Slab& in, std::size_t last) noexcept {
  if (last == k_nowhere) {
    return;
  }
  const bool at_the_end = last == k_waiting && last_waiting_ != nullptr;
  in.before = at_the_end ? last_waiting_ : nullptr;
  in.after = at_the_end ? nullptr : first_.at(last);
  (at_the_end ? last_waiting_->after : first_.at(last)) = &in;
  if (in.after != nullptr) {
    in.after->before = &in;
  }
  if (last == k_waiting) {
    last_waiting_ = &in;
  }
}

void SlabList::unlink(Slab& out, std::size_t first) noexcept {
  if (first == k_nowhere) {
    return;
  }
  if (first == k_waiting && last_waiting_ == &out) {
    last_waiting_ = out.before;
  }
  (out.before == nullptr ? first_.at(first) : out.before->after) = out.after;
  if (out.after != nullptr) {
    out.after->before = out.before;
  }
}

void SlabList::move(Slab& moved, std::size_t first) noexcept {
  if (const auto to = place(moved); to != first) {
    unlink(moved, first);
    link(moved, to);
  }
}

std::size_t SlabList::add(Slab& made, std::span<void*> out) noexcept {
  const bool waits = made.waiting != 0;
  const auto taken = take_bits(made, waits ? made.held_back() : made.free(), out);
  (waits ? made.waiting : made.kept) -= static_cast<std::uint32_t>(taken);
  link(made, place(made));
  return taken;
}

// Poisons the waiting blocks.
void SlabList::put_poison(Slab& passed) const noexcept {
  for (std::uint32_t block = 0; poison_.is_on() && block < passed.blocks; ++block) {
    if ((passed.held_back()[block / 64] >> block % 64 & 1) != 0) {
      poison_.put(passed.address_of(block), passed.block_bytes);
    }
  }
}

// Makes the waiting blocks free. Pre: their ticket has passed.
void SlabList::settle(Slab& passed) const noexcept {
  put_poison(passed);
  for (std::size_t word = 0; word < passed.words(); ++word) {
    passed.free()[word] |= std::exchange(passed.held_back()[word], 0);
  }
  passed.kept += std::exchange(passed.waiting, 0);
  passed.until = {};
}

std::size_t SlabList::take_waiting(std::span<void*> out, QueueSlots::Slot slot) noexcept {
  std::size_t taken = 0;
  auto* next = first_[k_waiting];
  for (int looks = 0; next != nullptr && taken < out.size() && looks < k_most_looks; ++looks) {
    auto& giving = *std::exchange(next, next->after);
    if (slots_->passed(giving.until)) {
      settle(giving);
      const auto more = take_bits(giving, giving.free(), out.subspan(taken));
      giving.kept -= static_cast<std::uint32_t>(more);
      taken += more;
    } else if (giving.until.slot() == slot) {
      const auto more = take_bits(giving, giving.held_back(), out.subspan(taken));
      giving.waiting -= static_cast<std::uint32_t>(more);
      taken += more;
    }
    move(giving, k_waiting);
  }
  return taken;
}

std::size_t SlabList::take(std::span<void*> out, QueueSlots::Slot slot) noexcept {
  std::size_t taken = 0;
  for (std::size_t from = 0; from < k_grades; ++from) {
    while (first_.at(from) != nullptr && taken < out.size()) {
      auto& giving = *first_.at(from);
      const auto more = take_bits(giving, giving.free(), out.subspan(taken));
      giving.kept -= static_cast<std::uint32_t>(more);
      taken += more;
      move(giving, from);
    }
  }
  return taken != 0 ? taken : take_waiting(out, slot);
}

bool SlabList::has(QueueSlots::Slot slot) const noexcept {
  if (std::any_of(first_.begin(), first_.begin() + k_grades,
                  [](const Slab* each) { return each != nullptr; })) {
    return true;
  }
  const auto* next = first_[k_waiting];
  for (int looks = 0; next != nullptr && looks < k_most_looks; ++looks) {
    if (slots_->good(next->until, slot)) {
      return true;
    }
    next = next->after;
  }
  return false;
}

Slab* SlabList::give(Slab& slab, void* block, Ticket freed) noexcept {
  const auto number = slab.block_at(block);
  const auto bit = std::uint64_t{1} << number % 64;
  const auto was = place(slab);
  if (slab.waiting != 0 && slots_->passed(slab.until)) {
    settle(slab);
  }
  if (slots_->passed(freed)) {
    poison_.put(block, slab.block_bytes);
    slab.free()[number / 64] |= bit;
    ++slab.kept;
  } else {
    slab.held_back()[number / 64] |= bit;
    slab.until = slab.waiting == 0 ? freed : slots_->joined(slab.until, freed);
    ++slab.waiting;
  }
  if (slab.is_whole()) {
    unlink(slab, was);
    return &slab;
  }
  move(slab, was);
  return nullptr;
}

Slab* SlabList::take_untouched() noexcept {
  for (const auto from : {k_grades - 1, k_waiting}) {
    for (auto* each = first_.at(from); each != nullptr; each = each->after) {
      if (each->is_whole()) {
        unlink(*each, from);
        return each;
      }
    }
  }
  return nullptr;
}

}  // namespace isthmus
