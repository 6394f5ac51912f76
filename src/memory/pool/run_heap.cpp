// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/run_heap.hpp"

#include <algorithm>
#include <bit>

#include "core/expects.hpp"

namespace isthmus {
namespace {

using PoolPageState = PoolPage::State;

}  // namespace

RunHeap::List RunHeap::list_for(Index count) noexcept {
  if (count < k_lists) {
    return {0, count};
  }
  const auto last_bit = static_cast<unsigned>(std::bit_width(count)) - 1;
  return {last_bit - k_lists_bits + 1, (count >> (last_bit - k_lists_bits)) & (k_lists - 1)};
}

void RunHeap::link(Index first, Index count) noexcept {
  auto& head = table_[first];
  const auto [doubling, part] = list_for(count);
  auto& top = heads_.at(doubling).at(part);
  head.span.store(count, k_relaxed);
  head.set_links(k_none, top);
  if (top != k_none) {
    table_[top].set_links(first, table_[top].next());
  }
  top = first;
  parts_.at(doubling) |= 1U << part;
  doublings_ |= 1U << doubling;
  if (count > 1) {
    table_[first + count - 1].span.store(count - 1, k_relaxed);
    table_[first + count - 1].state.store(PoolPageState::free_last, k_relaxed);
  }
  head.state.store(PoolPageState::free_head, k_relaxed);
  free_ += count;
  if (first_before(first) != k_none) {
    add_border(first);
  }
  if (is_free(first + count)) {
    add_border(first + count);
  }
}

void RunHeap::add_border(Index border) noexcept {
  borders_->insert(border);
  ++borders_added_;
}

void RunHeap::unlink(Index first) noexcept {
  const auto count = table_[first].span.load(k_relaxed);
  const auto [doubling, part] = list_for(count);
  const auto before = table_[first].previous();
  const auto after = table_[first].next();
  if (before == k_none) {
    heads_.at(doubling).at(part) = after;
  } else {
    table_[before].set_links(table_[before].previous(), after);
  }
  if (after != k_none) {
    table_[after].set_links(before, table_[after].next());
  }
  if (heads_.at(doubling).at(part) == k_none) {
    parts_.at(doubling) &= ~(1U << part);
    if (parts_.at(doubling) == 0) {
      doublings_ &= ~(1U << doubling);
    }
  }
  // A lookup of a stale pointer must not mistake the page for the beginning of a run.
  table_[first].state.store(PoolPageState::none, k_relaxed);
  table_[first + count - 1].state.store(PoolPageState::none, k_relaxed);
  free_ -= count;
  borders_->erase(first);
  borders_->erase(first + count);
}

// Readers check a page inside a run against the span of its first page (`first_of_run`), so records
// that an earlier run left there need not be cleared.
void RunHeap::mark_allocated(Index first, Index count) noexcept {
  for (Index offset = 1; offset < count; ++offset) {
    table_[first + offset].span.store(offset, k_relaxed);
    table_[first + offset].state.store(PoolPageState::body, k_relaxed);
  }
  table_[first].span.store(count, k_relaxed);
  table_[first].state.store(PoolPageState::live, k_relaxed);
}

// Examines the first few runs of a list.
RunHeap::Index RunHeap::usable_in(List list, Index count,
                                  QueueFences::EntryIndex entry) const noexcept {
  constexpr int k_max_scanned_runs = 8;
  auto at = heads_.at(list.doubling).at(list.part);
  for (int examined = 0; at != k_none && examined < k_max_scanned_runs; ++examined) {
    if (table_[at].span.load(k_relaxed) >= count && fences_->is_usable(tickets_[at], entry)) {
      return at;
    }
    at = table_[at].next();
  }
  return k_none;
}

// Advances to the next longer list that is not empty; false after the last one.
bool RunHeap::next_longer(List& list) const noexcept {
  const auto above = [](std::uint32_t bits, unsigned bit) {
    return bit + 1 < 32 ? bits & (~std::uint32_t{0} << (bit + 1)) : 0;
  };
  if (const auto parts = above(parts_.at(list.doubling), list.part); parts != 0) {
    list.part = static_cast<unsigned>(std::countr_zero(parts));
    return true;
  }
  const auto doublings = above(doublings_, list.doubling);
  if (doublings == 0) {
    return false;
  }
  list.doubling = static_cast<unsigned>(std::countr_zero(doublings));
  list.part = static_cast<unsigned>(std::countr_zero(parts_.at(list.doubling)));
  return true;
}

RunHeap::Index RunHeap::find(Index count, QueueFences::EntryIndex entry) const noexcept {
  auto list = list_for(count);
  do {
    if (const auto found = usable_in(list, count, entry); found != k_none) {
      return found;
    }
  } while (next_longer(list));
  return k_none;
}

void RunHeap::add(Index first, Index count, Ticket until) noexcept {
  tickets_[first] = until;
  link(first, count);
}

void RunHeap::remove(Index run, Index first, Index count) noexcept {
  const auto after = first + count;
  const auto end = run + table_[run].span.load(k_relaxed);
  ISTHMUS_EXPECTS(is_free(run) && run <= first && after <= end, run, end, first, after);
  unlink(run);
  if (run != first) {
    link(run, first - run);
  }
  if (after != end) {
    tickets_[after] = tickets_[run];
    link(after, end - after);
  }
}

void RunHeap::allocate(Index first, Index count) noexcept {
  const auto length = length_of(first);
  unlink(first);
  if (length > count) {
    tickets_[first + count] = tickets_[first];
    link(first + count, length - count);
  }
  mark_allocated(first, count);
}

RunHeap::Index RunHeap::keep_part(Index first, Index skip, Index count) noexcept {
  const auto length = table_[first].span.load(k_relaxed);
  const auto ticket = tickets_[first];
  tickets_[first + skip] = ticket;
  mark_allocated(first + skip, count);
  if (skip + count < length) {
    mark_allocated(first + skip + count, length - skip - count);
    deallocate(first + skip + count, ticket);
  }
  if (skip != 0) {
    mark_allocated(first, skip);
    deallocate(first, ticket);
  }
  return first + skip;
}

// The first page of the free run that ends right before `first`; k_none if there is none.
RunHeap::Index RunHeap::first_before(Index first) const noexcept {
  const auto& last = table_[first - 1];
  const auto state = last.state.load(k_relaxed);
  if (state == PoolPageState::free_head) {
    return first - 1;
  }
  return state == PoolPageState::free_last ? first - 1 - last.span.load(k_relaxed) : k_none;
}

// Joins a free run that is in no list with those neighbours that it can be joined with, and links
// the result. Returns its first page.
RunHeap::Index RunHeap::join(Index first) noexcept {
  auto count = table_[first].span.load(k_relaxed);
  auto ticket = tickets_[first];
  const auto after = first + count;
  if (table_[after].state.load(k_relaxed) == PoolPageState::free_head &&
      fences_->joins(ticket, tickets_[after])) {
    ticket = fences_->joined(ticket, tickets_[after]);
    count += table_[after].span.load(k_relaxed);
    unlink(after);
  }
  if (const auto before = first_before(first);
      before != k_none && fences_->joins(ticket, tickets_[before])) {
    ticket = fences_->joined(ticket, tickets_[before]);
    count += first - before;
    unlink(before);
    first = before;
  }
  tickets_[first] = ticket;
  link(first, count);
  return first;
}

void RunHeap::deallocate(Index first, Ticket freed) noexcept {
  ISTHMUS_EXPECTS(!is_free(first) && length_of(first) != 0, first);
  table_[first].state.store(PoolPageState::none, k_relaxed);
  tickets_[first] = freed;
  static_cast<void>(join(first));
}

bool RunHeap::is_free(Index first) const noexcept {
  return table_[first].state.load(k_relaxed) == PoolPageState::free_head;
}

bool RunHeap::is_free_for(Index first, QueueFences::EntryIndex entry) const noexcept {
  return is_free(first) && fences_->is_usable(tickets_[first], entry);
}

RunHeap::Progress RunHeap::coalesce(Index index) noexcept {
  auto border = borders_->next(index);
  for (int examined = 0; border != k_none && examined < k_max_examined; ++examined) {
    const auto before = first_before(border);
    if (fences_->joins(tickets_[before], tickets_[border])) {
      unlink(before);
      static_cast<void>(join(before));
    }
    border = borders_->next(border + 1);
  }
  return {border};
}

RunHeap::Progress RunHeap::unite_all(Index index, QueueFences::EntryIndex entry) noexcept {
  auto border = borders_->next(index);
  for (int examined = 0; border != k_none && examined < k_max_examined; ++examined) {
    const auto before = first_before(border);
    if (is_free_for(before, entry) && is_free_for(border, entry)) {
      join_two(before);
    }
    border = borders_->next(border + 1);
  }
  return {border};
}

// A sequence of usable neighbours begins at the first border whose preceding run is usable. Each
// free run is examined once or twice, and once more when it is joined.
void RunHeap::unite(Search& search, Index wanted, QueueFences::EntryIndex entry,
                    int max_examined) noexcept {
  for (int examined = 0; examined < max_examined && search.next != k_none && search.found == k_none;
       ++examined) {
    unite_one(search, wanted, entry);
  }
}

void RunHeap::unite_one(Search& search, Index wanted, QueueFences::EntryIndex entry) noexcept {
  if (search.joins) {
    join_one(search, wanted, entry);
  } else if (search.first != k_none) {
    count_one(search, wanted, entry);
  } else {
    begin_one(search, wanted, entry);
  }
}

void RunHeap::begin_one(Search& search, Index wanted,
                        QueueFences::EntryIndex entry) const noexcept {
  const auto border = borders_->next(search.next);
  search.next = border == k_none ? k_none : border + 1;
  const auto first = border == k_none ? k_none : first_before(border);
  if (first != k_none && fences_->is_usable(tickets_[first], entry)) {
    search.first = first;
    search.end = border;
    search.joins = border - first >= wanted;
  }
}

// If the next run is not usable, or no free run begins there any more, the search continues after
// it.
void RunHeap::count_one(Search& search, Index wanted,
                        QueueFences::EntryIndex entry) const noexcept {
  if (is_free_for(search.end, entry)) {
    search.end += length_of(search.end);
    search.joins = search.end - search.first >= wanted;
  } else {
    search.next = std::max(search.next, search.end + 1);
    search.first = k_none;
  }
}

// Joins no more runs than suffice, so that further ones retain their own tickets.
void RunHeap::join_one(Search& search, Index wanted, QueueFences::EntryIndex entry) noexcept {
  const bool is_usable = is_free_for(search.first, entry);
  const auto after = is_usable ? search.first + length_of(search.first) : search.first;
  if (is_usable && after - search.first >= wanted) {
    search.found = search.first;
  } else if (is_usable && is_free_for(after, entry)) {
    join_two(search.first);
  } else {
    search.next = std::max(search.next, after + 1);
    search.first = k_none;
    search.joins = false;
  }
}

// Joins the free run that begins at `first` and the one that begins where it ends.
void RunHeap::join_two(Index first) noexcept {
  const auto after = first + length_of(first);
  ISTHMUS_EXPECTS(is_free(first) && is_free(after), first, after);
  const auto end = after + length_of(after);
  const auto ticket = fences_->joined(tickets_[first], tickets_[after]);
  unlink(first);
  unlink(after);
  tickets_[first] = ticket;
  link(first, end - first);
}

bool RunHeap::is_sound_free(Index first) const noexcept {
  const auto count = length_of(first);
  const auto& last = table_[first + count - 1];
  if (count == 0 || (count > 1 && (last.state.load(k_relaxed) != PoolPageState::free_last ||
                                   last.span.load(k_relaxed) != count - 1))) {
    return false;
  }
  const auto [doubling, part] = list_for(count);
  const auto before = table_[first].previous();
  const auto after = table_[first].next();
  const auto named = before == k_none ? heads_.at(doubling).at(part) : table_[before].next();
  return named == first && (after == k_none || table_[after].previous() == first) &&
         (parts_.at(doubling) >> part & 1) != 0 && (doublings_ >> doubling & 1) != 0;
}

bool RunHeap::is_sound_allocated(Index first) const noexcept {
  const auto count = length_of(first);
  for (Index offset = 1; offset < count; ++offset) {
    const auto& body = table_[first + offset];
    if (body.state.load(k_relaxed) != PoolPageState::body || body.span.load(k_relaxed) != offset) {
      return false;
    }
  }
  return count != 0;
}

RunHeap::Finding RunHeap::find_damage(Index first, Index count) const noexcept {
  Finding finding{k_none};
  bool follows_free = false;
  for (auto at = first; at < first + count;) {
    const auto& record = table_[at];
    const bool is_free = record.state.load(k_relaxed) == PoolPageState::free_head;
    const bool is_slab = record.is_slab() && record.in_slab() != nullptr;
    if (!is_slab &&
        !(is_free ? is_sound_free(at) : record.begins_run() && is_sound_allocated(at))) {
      return {at};
    }
    const bool is_border = is_free && follows_free;
    if (borders_->has(at) != is_border) {
      return {at};
    }
    follows_free = is_free;
    const auto length = is_slab ? 1 : length_of(at);
    finding.free += is_free ? length : 0;
    at += length;
    finding.neighbours += is_border ? 1 : 0;
  }
  return finding;
}

}  // namespace isthmus
