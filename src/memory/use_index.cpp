// SPDX-License-Identifier: Apache-2.0
#include "memory/use_index.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "core/hash.hpp"

namespace isthmus {

bool use_index::bytes_traits::is_before(const node& a, const node& b) noexcept {
  return std::tie(a.what.range.begin, a.number) < std::tie(b.what.range.begin, b.number);
}

void use_index::bytes_traits::update(node& above) noexcept {
  above.end = above.what.range.end;
  above.write_end = above.what.writes ? above.end : 0;
  above.newest = above.number;
  for (const auto* below : {above.by_bytes.left, above.by_bytes.right}) {
    if (below != nullptr) {
      above.end = std::max(above.end, below->end);
      above.write_end = std::max(above.write_end, below->write_end);
      above.newest = std::max(above.newest, below->newest);
    }
  }
}

bool use_index::queue_traits::is_before(const node& a, const node& b) noexcept {
  return std::tie(a.what.on, a.number) < std::tie(b.what.on, b.number);
}

void use_index::list::push_back(node& added) noexcept {
  added.next = nullptr;
  added.previous = last;
  (last == nullptr ? first : last->next) = &added;
  last = &added;
  ++count;
}

void use_index::list::erase(node& gone) noexcept {
  (gone.previous == nullptr ? first : gone.previous->next) = gone.next;
  (gone.next == nullptr ? last : gone.next->previous) = gone.previous;
  --count;
}

use_index::~use_index() {
  for (auto* all : {&staying_, &leaving_}) {
    while (auto* const each = all->first) {
      all->erase(*each);
      const std::unique_ptr<node> gone{each};
    }
  }
}

void use_index::add_spare(std::unique_ptr<node> made) noexcept {
  spares_.push_back(std::move(made));
  ++spare_count_;
}

void use_index::insert(pending_use added) noexcept {
  auto* const made = spares_.pop_front().release();
  --spare_count_;
  static_cast<pending_use&>(*made) = std::move(added);
  made->priority = static_cast<std::uint32_t>(hash_of(made->number) >> 32);
  bytes_.insert(*made);
  queues_.insert(*made);
  staying_.push_back(*made);
}

void use_index::remove(node& gone, chain& into) noexcept {
  bytes_.erase(gone);
  queues_.erase(gone);
  (gone.leaves ? leaving_ : staying_).erase(gone);
  into.push_back(std::unique_ptr<node>{&gone});
}

void use_index::replace_only(pending_use& with) noexcept {
  auto& there = *bytes_.root();
  std::swap(static_cast<pending_use&>(there), with);
  bytes_traits::update(there);
  if (std::exchange(there.leaves, false)) {
    leaving_.erase(there);
    staying_.push_back(there);
  }
}

void use_index::let_leave(node& which) noexcept {
  if (!std::exchange(which.leaves, true)) {
    staying_.erase(which);
    leaving_.push_back(which);
  }
}

bool use_index::let_first_leave(std::size_t most) noexcept {
  for (; staying_.first != nullptr && staying_.first->ended->settled(); --most) {
    if (most == 0) {
      return false;
    }
    let_leave(*staying_.first);
  }
  return true;
}

void use_index::look_at(std::size_t count) noexcept {
  for (; count != 0 && staying_.first != nullptr; --count) {
    auto& each = *staying_.first;
    if (each.ended->settled()) {
      let_leave(each);
    } else {
      staying_.erase(each);
      staying_.push_back(each);
    }
  }
}

bool use_index::drop(std::size_t most, chain& into) noexcept {
  for (; most != 0 && leaving_.first != nullptr; --most) {
    remove(*leaving_.first, into);
  }
  return leaving_.first == nullptr;
}

use_index::node* use_index::find(const pending_use& known) const noexcept {
  node key;
  key.what.range = known.what.range;
  key.number = known.number;
  auto* at = bytes_.root();
  while (at != nullptr && at->number != known.number) {
    at = bytes_traits::is_before(key, *at) ? at->by_bytes.left : at->by_bytes.right;
  }
  return at;
}

}  // namespace isthmus
