// SPDX-License-Identifier: Apache-2.0
#include "memory/run_heap.hpp"

#include <algorithm>
#include <bit>

namespace isthmus {
namespace {

using grain_state = grain::state;

}  // namespace

run_heap::list run_heap::list_for(index count) noexcept {
  if (count < k_lists) {
    return {0, count};
  }
  const auto last_bit = static_cast<unsigned>(std::bit_width(count)) - 1;
  return {last_bit - k_lists_bits + 1, (count >> (last_bit - k_lists_bits)) & (k_lists - 1)};
}

void run_heap::link(index first, index count) noexcept {
  auto& head = table_[first];
  const auto [doubling, part] = list_for(count);
  auto& top = heads_.at(doubling).at(part);
  head.span.store(count, k_relaxed);
  head.set_links(k_none, top);
  if (top != k_none) {
    table_[top].set_links(first, table_[top].after());
  }
  top = first;
  parts_.at(doubling) |= 1U << part;
  doublings_ |= 1U << doubling;
  if (count > 1) {
    table_[first + count - 1].span.store(count - 1, k_relaxed);
    table_[first + count - 1].is.store(grain_state::free_last, k_relaxed);
  }
  head.is.store(grain_state::free_head, k_relaxed);
  free_ += count;
  if (first_before(first) != k_none) {
    add_border(first);
  }
  if (is_free(first + count)) {
    add_border(first + count);
  }
}

void run_heap::add_border(index at) noexcept {
  borders_->insert(at);
  ++borders_made_;
}

void run_heap::unlink(index first) noexcept {
  const auto count = table_[first].span.load(k_relaxed);
  const auto [doubling, part] = list_for(count);
  const auto before = table_[first].before();
  const auto after = table_[first].after();
  if (before == k_none) {
    heads_.at(doubling).at(part) = after;
  } else {
    table_[before].set_links(table_[before].before(), after);
  }
  if (after != k_none) {
    table_[after].set_links(before, table_[after].after());
  }
  if (heads_.at(doubling).at(part) == k_none) {
    parts_.at(doubling) &= ~(1U << part);
    if (parts_.at(doubling) == 0) {
      doublings_ &= ~(1U << doubling);
    }
  }
  // A lookup of a stale pointer must not take it for the beginning of a run.
  table_[first].is.store(grain_state::none, k_relaxed);
  table_[first + count - 1].is.store(grain_state::none, k_relaxed);
  free_ -= count;
  borders_->erase(first);
  borders_->erase(first + count);
}

// Readers check a page inside a run against the span of its first page (`first_of_run`), so what an
// earlier run left there needs no clearing.
void run_heap::mark_taken(index first, index count) noexcept {
  for (index back = 1; back < count; ++back) {
    table_[first + back].span.store(back, k_relaxed);
    table_[first + back].is.store(grain_state::body, k_relaxed);
  }
  table_[first].span.store(count, k_relaxed);
  table_[first].is.store(grain_state::live, k_relaxed);
}

// Examines the first few runs of a list.
run_heap::index run_heap::good_in(list in, index count, queue_slots::slot whom) const noexcept {
  constexpr int k_few = 8;
  auto at = heads_.at(in.doubling).at(in.part);
  for (int looks = 0; at != k_none && looks < k_few; ++looks) {
    if (table_[at].span.load(k_relaxed) >= count && slots_->good(tickets_[at], whom)) {
      return at;
    }
    at = table_[at].after();
  }
  return k_none;
}

// Advances to the next longer list that is not empty; false after the last one.
bool run_heap::next_longer(list& than) const noexcept {
  const auto above = [](std::uint32_t bits, unsigned bit) {
    return bit + 1 < 32 ? bits & (~std::uint32_t{0} << (bit + 1)) : 0;
  };
  if (const auto parts = above(parts_.at(than.doubling), than.part); parts != 0) {
    than.part = static_cast<unsigned>(std::countr_zero(parts));
    return true;
  }
  const auto doublings = above(doublings_, than.doubling);
  if (doublings == 0) {
    return false;
  }
  than.doubling = static_cast<unsigned>(std::countr_zero(doublings));
  than.part = static_cast<unsigned>(std::countr_zero(parts_.at(than.doubling)));
  return true;
}

run_heap::index run_heap::find(index count, queue_slots::slot whom) const noexcept {
  auto in = list_for(count);
  do {
    if (const auto found = good_in(in, count, whom); found != k_none) {
      return found;
    }
  } while (next_longer(in));
  return k_none;
}

void run_heap::add(index first, index count, ticket until) noexcept {
  tickets_[first] = until;
  link(first, count);
}

void run_heap::remove(index run, index first, index count) noexcept {
  const auto behind = first + count;
  const auto end = run + table_[run].span.load(k_relaxed);
  unlink(run);
  if (run != first) {
    link(run, first - run);
  }
  if (behind != end) {
    tickets_[behind] = tickets_[run];
    link(behind, end - behind);
  }
}

void run_heap::take(index first, index count) noexcept {
  const auto had = length_of(first);
  unlink(first);
  if (had > count) {
    tickets_[first + count] = tickets_[first];
    link(first + count, had - count);
  }
  mark_taken(first, count);
}

run_heap::index run_heap::keep(index first, index skip, index count) noexcept {
  const auto had = table_[first].span.load(k_relaxed);
  const auto taken = tickets_[first];
  tickets_[first + skip] = taken;
  mark_taken(first + skip, count);
  if (skip + count < had) {
    mark_taken(first + skip + count, had - skip - count);
    give(first + skip + count, taken);
  }
  if (skip != 0) {
    mark_taken(first, skip);
    give(first, taken);
  }
  return first + skip;
}

// The first page of the free run that ends right before `first`; k_none if there is none.
run_heap::index run_heap::first_before(index first) const noexcept {
  const auto& last = table_[first - 1];
  const auto is = last.is.load(k_relaxed);
  if (is == grain_state::free_head) {
    return first - 1;
  }
  return is == grain_state::free_last ? first - 1 - last.span.load(k_relaxed) : k_none;
}

// Joins a free run that is in no list with those neighbours that it can be joined with, and links
// the result. Returns its first page.
run_heap::index run_heap::join(index first) noexcept {
  auto count = table_[first].span.load(k_relaxed);
  auto when = tickets_[first];
  const auto behind = first + count;
  if (table_[behind].is.load(k_relaxed) == grain_state::free_head &&
      slots_->joins(when, tickets_[behind])) {
    when = slots_->joined(when, tickets_[behind]);
    count += table_[behind].span.load(k_relaxed);
    unlink(behind);
  }
  if (const auto before = first_before(first);
      before != k_none && slots_->joins(when, tickets_[before])) {
    when = slots_->joined(when, tickets_[before]);
    count += first - before;
    unlink(before);
    first = before;
  }
  tickets_[first] = when;
  link(first, count);
  return first;
}

void run_heap::give(index first, ticket freed) noexcept {
  table_[first].is.store(grain_state::none, k_relaxed);
  tickets_[first] = freed;
  static_cast<void>(join(first));
}

bool run_heap::is_free(index first) const noexcept {
  return table_[first].is.load(k_relaxed) == grain_state::free_head;
}

bool run_heap::is_free_for(index first, queue_slots::slot whom) const noexcept {
  return is_free(first) && slots_->good(tickets_[first], whom);
}

run_heap::progress run_heap::settle(index from) noexcept {
  auto border = borders_->next(from);
  for (int looks = 0; border != k_none && looks < k_most_looks; ++looks) {
    const auto before = first_before(border);
    if (slots_->joins(tickets_[before], tickets_[border])) {
      unlink(before);
      static_cast<void>(join(before));
    }
    border = borders_->next(border + 1);
  }
  return {border};
}

run_heap::progress run_heap::unite_all(index from, queue_slots::slot whom) noexcept {
  auto border = borders_->next(from);
  for (int looks = 0; border != k_none && looks < k_most_looks; ++looks) {
    const auto before = first_before(border);
    if (is_free_for(before, whom) && is_free_for(border, whom)) {
      join_two(before);
    }
    border = borders_->next(border + 1);
  }
  return {border};
}

// A sequence of usable neighbours begins at the first border whose preceding run is usable. Each
// free run is examined once or twice, and once more when it is joined.
void run_heap::unite(search& on, index wanted, queue_slots::slot whom, int most_looks) noexcept {
  for (int looks = 0; looks < most_looks && on.next != k_none && on.found == k_none; ++looks) {
    unite_one(on, wanted, whom);
  }
}

void run_heap::unite_one(search& on, index wanted, queue_slots::slot whom) noexcept {
  if (on.joins) {
    join_one(on, wanted, whom);
  } else if (on.first != k_none) {
    count_one(on, wanted, whom);
  } else {
    begin_one(on, wanted, whom);
  }
}

void run_heap::begin_one(search& on, index wanted, queue_slots::slot whom) const noexcept {
  const auto border = borders_->next(on.next);
  on.next = border == k_none ? k_none : border + 1;
  const auto first = border == k_none ? k_none : first_before(border);
  if (first != k_none && slots_->good(tickets_[first], whom)) {
    on.first = first;
    on.end = border;
    on.joins = border - first >= wanted;
  }
}

// If the next run is not usable, or no free run begins there any more, the search continues after
// it.
void run_heap::count_one(search& on, index wanted, queue_slots::slot whom) const noexcept {
  if (is_free_for(on.end, whom)) {
    on.end += length_of(on.end);
    on.joins = on.end - on.first >= wanted;
  } else {
    on.next = std::max(on.next, on.end + 1);
    on.first = k_none;
  }
}

// Runs after those that suffice keep their own tickets.
void run_heap::join_one(search& on, index wanted, queue_slots::slot whom) noexcept {
  const bool is_good = is_free_for(on.first, whom);
  const auto behind = is_good ? on.first + length_of(on.first) : on.first;
  if (is_good && behind - on.first >= wanted) {
    on.found = on.first;
  } else if (is_good && is_free_for(behind, whom)) {
    join_two(on.first);
  } else {
    on.next = std::max(on.next, behind + 1);
    on.first = k_none;
    on.joins = false;
  }
}

// Pre: a free run begins at `first`, and another one where it ends.
void run_heap::join_two(index first) noexcept {
  const auto behind = first + length_of(first);
  const auto end = behind + length_of(behind);
  const auto when = slots_->joined(tickets_[first], tickets_[behind]);
  unlink(first);
  unlink(behind);
  tickets_[first] = when;
  link(first, end - first);
}

}  // namespace isthmus
