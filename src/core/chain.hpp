// SPDX-License-Identifier: Apache-2.0
#pragma once
// Singly linked list of nodes that were allocated earlier, so that no operation allocates. Owns its
// nodes. Not thread-safe.

#include <memory>
#include <utility>

namespace isthmus {

// `Node` has a member `Node* next`, which the list uses.
template <class Node>
class Chain {
 public:
  Chain() noexcept = default;
  Chain(const Chain&) = delete;
  Chain& operator=(const Chain&) = delete;
  ~Chain() { clear(); }

  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
  void push_back(std::unique_ptr<Node> added) noexcept {
    added->next = nullptr;
    append(*added, *added);
    static_cast<void>(added.release());
  }
  [[nodiscard]] std::unique_ptr<Node> pop_front() noexcept {
    return std::unique_ptr<Node>{std::exchange(first_, first_->next)};
  }
  // Moves all nodes of `other` to the end.
  void splice(Chain& other) noexcept {
    if (!other.empty()) {
      append(*other.first_, *other.last_);
      other.first_ = nullptr;
    }
  }
  // Iterative, since destroying a long list recursively would need a deep stack.
  void clear() noexcept {
    while (!empty()) {
      static_cast<void>(pop_front());
    }
  }

 private:
  void append(Node& first, Node& last) noexcept {
    (first_ == nullptr ? first_ : last_->next) = &first;
    last_ = &last;
  }

  Node* first_ = nullptr;
  Node* last_ = nullptr;  // valid only if `first_` is not null
};

}  // namespace isthmus
