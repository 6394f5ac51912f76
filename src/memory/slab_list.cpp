// SPDX-License-Identifier: Apache-2.0
#include "memory/slab_list.hpp"

#include <algorithm>
#include <bit>

namespace isthmus {
namespace {

// Takes as many blocks from a bitmap as it has and `out` can hold.
std::size_t take_bits(const slab& from, std::uint64_t* words, std::span<void*> out) noexcept {
  std::size_t taken = 0;
  for (std::size_t word = 0; word < from.words() && taken < out.size(); ++word) {
    while (words[word] != 0 && taken < out.size()) {
      const auto bit = static_cast<std::size_t>(std::countr_zero(words[word]));
      words[word] &= words[word] - 1;
      out[taken++] = from.address_of(word * 64 + bit);
    }
  }
  return taken;
}

}  // namespace

// Waiting slabs are sorted, the longest waiting first.
void slab_list::link(slab& in, std::size_t to) noexcept {
  if (to == k_nowhere) {
    return;
  }
  const bool at_the_end = to == k_waiting && last_waiting_ != nullptr;
  in.before = at_the_end ? last_waiting_ : nullptr;
  in.after = at_the_end ? nullptr : first_.at(to);
  (at_the_end ? last_waiting_->after : first_.at(to)) = &in;
  if (in.after != nullptr) {
    in.after->before = &in;
  }
  if (to == k_waiting) {
    last_waiting_ = &in;
  }
}

void slab_list::unlink(slab& out, std::size_t from) noexcept {
  if (from == k_nowhere) {
    return;
  }
  if (from == k_waiting && last_waiting_ == &out) {
    last_waiting_ = out.before;
  }
  (out.before == nullptr ? first_.at(from) : out.before->after) = out.after;
  if (out.after != nullptr) {
    out.after->before = out.before;
  }
}

void slab_list::move(slab& moved, std::size_t from) noexcept {
  if (const auto to = place(moved); to != from) {
    unlink(moved, from);
    link(moved, to);
  }
}

std::size_t slab_list::add(slab& made, std::span<void*> out) noexcept {
  const bool waits = made.waiting != 0;
  const auto taken = take_bits(made, waits ? made.held_back() : made.free(), out);
  (waits ? made.waiting : made.kept) -= static_cast<std::uint32_t>(taken);
  link(made, place(made));
  return taken;
}

// Poisons the waiting blocks.
void slab_list::put_poison(slab& passed) const noexcept {
  for (std::uint32_t block = 0; poison_.is_on() && block < passed.blocks; ++block) {
    if ((passed.held_back()[block / 64] >> block % 64 & 1) != 0) {
      poison_.put(passed.address_of(block), passed.block_bytes);
    }
  }
}

// Makes the waiting blocks free. Pre: their ticket has passed.
void slab_list::settle(slab& passed) const noexcept {
  put_poison(passed);
  for (std::size_t word = 0; word < passed.words(); ++word) {
    passed.free()[word] |= std::exchange(passed.held_back()[word], 0);
  }
  passed.kept += std::exchange(passed.waiting, 0);
  passed.until = {};
}

std::size_t slab_list::take_waiting(std::span<void*> out, queue_slots::slot whom) noexcept {
  std::size_t taken = 0;
  auto* next = first_[k_waiting];
  for (int looks = 0; next != nullptr && taken < out.size() && looks < k_most_looks; ++looks) {
    auto& giving = *std::exchange(next, next->after);
    if (slots_->passed(giving.until)) {
      settle(giving);
      const auto more = take_bits(giving, giving.free(), out.subspan(taken));
      giving.kept -= static_cast<std::uint32_t>(more);
      taken += more;
    } else if (giving.until.slot() == whom) {
      const auto more = take_bits(giving, giving.held_back(), out.subspan(taken));
      giving.waiting -= static_cast<std::uint32_t>(more);
      taken += more;
    }
    move(giving, k_waiting);
  }
  return taken;
}

std::size_t slab_list::take(std::span<void*> out, queue_slots::slot whom) noexcept {
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
  return taken != 0 ? taken : take_waiting(out, whom);
}

bool slab_list::has(queue_slots::slot whom) const noexcept {
  if (std::any_of(first_.begin(), first_.begin() + k_grades,
                  [](const slab* each) { return each != nullptr; })) {
    return true;
  }
  const auto* next = first_[k_waiting];
  for (int looks = 0; next != nullptr && looks < k_most_looks; ++looks) {
    if (slots_->good(next->until, whom)) {
      return true;
    }
    next = next->after;
  }
  return false;
}

slab* slab_list::give(slab& to, void* block, ticket freed) noexcept {
  const auto number = to.block_at(block);
  const auto bit = std::uint64_t{1} << number % 64;
  const auto was = place(to);
  if (to.waiting != 0 && slots_->passed(to.until)) {
    settle(to);
  }
  if (slots_->passed(freed)) {
    poison_.put(block, to.block_bytes);
    to.free()[number / 64] |= bit;
    ++to.kept;
  } else {
    to.held_back()[number / 64] |= bit;
    to.until = to.waiting == 0 ? freed : slots_->joined(to.until, freed);
    ++to.waiting;
  }
  if (to.is_whole()) {
    unlink(to, was);
    return &to;
  }
  move(to, was);
  return nullptr;
}

slab* slab_list::take_untouched() noexcept {
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
