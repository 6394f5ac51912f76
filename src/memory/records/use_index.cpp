// SPDX-License-Identifier: Apache-2.0
#include "memory/records/use_index.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "core/expects.hpp"
#include "core/hash.hpp"

namespace isthmus {

bool UseIndex::BytesTraits::is_before(const Node& a, const Node& b) noexcept {
  return std::tie(a.use.range.begin, a.number) < std::tie(b.use.range.begin, b.number);
}

void UseIndex::BytesTraits::update(Node& above) noexcept {
  above.end = above.use.range.end;
  above.write_end = above.use.writes ? above.end : 0;
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
  return std::tie(a.use.queue_serial, a.number) < std::tie(b.use.queue_serial, b.number);
}

void UseIndex::List::push_back(Node& added) noexcept {
  added.next = nullptr;
  added.previous = last;
  (last == nullptr ? first : last->next) = &added;
  last = &added;
  ++count;
}

void UseIndex::List::erase(Node& node) noexcept {
  (node.previous == nullptr ? first : node.previous->next) = node.next;
  (node.next == nullptr ? last : node.next->previous) = node.previous;
  --count;
}

void UseIndex::clear() noexcept {
  for (auto* all : {&active_, &leaving_}) {
    while (auto* const each = all->first) {
      all->erase(*each);
      const std::unique_ptr<Node> owned{each};
    }
  }
}

void UseIndex::add_spare(std::unique_ptr<Node> node) noexcept {
  spares_.push_back(std::move(node));
  ++spare_count_;
}

void UseIndex::insert(PendingUse added) noexcept {
  ISTHMUS_EXPECTS(spare_count_ > 0);
  ISTHMUS_EXPECTS_SLOW(find(added) == nullptr, added.number);
  auto* const node = spares_.pop_front().release();
  --spare_count_;
  static_cast<PendingUse&>(*node) = std::move(added);
  node->priority = static_cast<std::uint32_t>(hash_of(node->number) >> 32);
  bytes_.insert(*node);
  queues_.insert(*node);
  active_.push_back(*node);
}

void UseIndex::remove(Node& node, Chain& out) noexcept {
  bytes_.erase(node);
  queues_.erase(node);
  (node.is_leaving ? leaving_ : active_).erase(node);
  out.push_back(std::unique_ptr<Node>{&node});
}

void UseIndex::replace_only(PendingUse& use) noexcept {
  ISTHMUS_EXPECTS(size() == 1, size());
  auto& node = *bytes_.root();
  std::swap(static_cast<PendingUse&>(node), use);
  BytesTraits::update(node);
  if (std::exchange(node.is_leaving, false)) {
    leaving_.erase(node);
    active_.push_back(node);
  }
}

void UseIndex::mark_leaving(Node& node) noexcept {
  if (!std::exchange(node.is_leaving, true)) {
    active_.erase(node);
    leaving_.push_back(node);
  }
}

bool UseIndex::mark_first_ended(std::size_t max) noexcept {
  for (; active_.first != nullptr && active_.first->event->settled(); --max) {
    if (max == 0) {
      return false;
    }
    mark_leaving(*active_.first);
  }
  return true;
}

void UseIndex::examine(std::size_t count) noexcept {
  for (; count != 0 && active_.first != nullptr; --count) {
    auto& each = *active_.first;
    if (each.event->settled()) {
      mark_leaving(each);
    } else {
      active_.erase(each);
      active_.push_back(each);
    }
  }
}

bool UseIndex::drop(std::size_t max, Chain& out) noexcept {
  for (; max != 0 && leaving_.first != nullptr; --max) {
    remove(*leaving_.first, out);
  }
  return leaving_.first == nullptr;
}

UseIndex::Node* UseIndex::find(const PendingUse& use) const noexcept {
  Node key;
  key.use.range = use.use.range;
  key.number = use.number;
  auto* at = bytes_.root();
  while (at != nullptr && at->number != use.number) {
    at = BytesTraits::is_before(key, *at) ? at->by_bytes.left : at->by_bytes.right;
  }
  return at;
}

}  // namespace isthmus
