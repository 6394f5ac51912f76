// SPDX-License-Identifier: Apache-2.0
#include "memory/use_index.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "core/hash.hpp"

namespace isthmus {

bool UseIndex::BytesTraits::is_before(const Node& a, const Node& b) noexcept {
  return std::tie(a.what.range.begin, a.number) < std::tie(b.what.range.begin, b.number);
}

void UseIndex::BytesTraits::update(Node& above) noexcept {
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

bool UseIndex::QueueTraits::is_before(const Node& a, const Node& b) noexcept {
  return std::tie(a.what.on, a.number) < std::tie(b.what.on, b.number);
}

void UseIndex::List::push_back(Node& added) noexcept {
  added.next = nullptr;
  added.previous = last;
  (last == nullptr ? first : last->next) = &added;
  last = &added;
  ++count;
}

void UseIndex::List::erase(Node& gone) noexcept {
  (gone.previous == nullptr ? first : gone.previous->next) = gone.next;
  (gone.next == nullptr ? last : gone.next->previous) = gone.previous;
  --count;
}

UseIndex::~UseIndex() {
  for (auto* all : {&staying_, &leaving_}) {
    while (auto* const each = all->first) {
      all->erase(*each);
      const std::unique_ptr<Node> gone{each};
    }
  }
}

void UseIndex::add_spare(std::unique_ptr<Node> made) noexcept {
  spares_.push_back(std::move(made));
  ++spare_count_;
}

void UseIndex::insert(PendingUse added) noexcept {
  auto* const made = spares_.pop_front().release();
  --spare_count_;
  static_cast<PendingUse&>(*made) = std::move(added);
  made->priority = static_cast<std::uint32_t>(hash_of(made->number) >> 32);
  bytes_.insert(*made);
  queues_.insert(*made);
  staying_.push_back(*made);
}

void UseIndex::remove(Node& gone, Chain& out) noexcept {
  bytes_.erase(gone);
  queues_.erase(gone);
  (gone.leaves ? leaving_ : staying_).erase(gone);
  out.push_back(std::unique_ptr<Node>{&gone});
}

void UseIndex::replace_only(PendingUse& with) noexcept {
  auto& there = *bytes_.root();
  std::swap(static_cast<PendingUse&>(there), with);
  BytesTraits::update(there);
  if (std::exchange(there.leaves, false)) {
    leaving_.erase(there);
    staying_.push_back(there);
  }
}

void UseIndex::let_leave(Node& which) noexcept {
  if (!std::exchange(which.leaves, true)) {
    staying_.erase(which);
    leaving_.push_back(which);
  }
}

bool UseIndex::let_first_leave(std::size_t max) noexcept {
  for (; staying_.first != nullptr && staying_.first->ended->settled(); --max) {
    if (max == 0) {
      return false;
    }
    let_leave(*staying_.first);
  }
  return true;
}

void UseIndex::look_at(std::size_t count) noexcept {
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

bool UseIndex::drop(std::size_t max, Chain& out) noexcept {
  for (; max != 0 && leaving_.first != nullptr; --max) {
    remove(*leaving_.first, out);
  }
  return leaving_.first == nullptr;
}

UseIndex::Node* UseIndex::find(const PendingUse& known) const noexcept {
  Node key;
  key.what.range = known.what.range;
  key.number = known.number;
  auto* at = bytes_.root();
  while (at != nullptr && at->number != known.number) {
    at = BytesTraits::is_before(key, *at) ? at->by_bytes.left : at->by_bytes.right;
  }
  return at;
}

}  // namespace isthmus
