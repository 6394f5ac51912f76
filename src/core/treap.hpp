// SPDX-License-Identifier: Apache-2.0
#pragma once
// A sorted tree of nodes that were allocated earlier, so that no operation allocates. Not
// thread-safe.
//
// A treap (Seidel and Aragon, 1996): a search tree by key and a heap by priority. Random-looking
// priorities keep its depth around 2 ln n, whatever the order of the keys.

#include <cstdint>
#include <utility>

#include "core/expects.hpp"

namespace isthmus {

template <class Node>
struct TreeLinks {
  Node* left = nullptr;
  Node* right = nullptr;
};

// `Traits` has static functions: links(node) returns the node's links in this tree, is_before(a, b)
// compares keys, which are unique, and update(node) is called after the nodes below it have
// changed. A node has a member `priority`. Nodes are not owned.
template <class Node, class Traits>
class Treap {
 public:
  [[nodiscard]] Node* root() const noexcept { return root_; }
  void insert(Node& added) noexcept { root_ = inserted(root_, added); }
  // The node has the key that it was inserted with.
  void erase(Node& removed) noexcept { root_ = without(root_, removed); }

 private:
  struct Halves {
    Node* before;
    Node* after;
  };

  [[nodiscard]] static Node* inserted(Node* tree, Node& added) noexcept {
    if (tree == nullptr || tree->priority < added.priority) {
      const auto [before, after] = split(tree, added);
      Traits::links(added) = {before, after};
      Traits::update(added);
      return &added;
    }
    auto& links = Traits::links(*tree);
    auto*& child = Traits::is_before(added, *tree) ? links.left : links.right;
    child = inserted(child, added);
    Traits::update(*tree);
    return tree;
  }
  [[nodiscard]] static Halves split(Node* tree, const Node& pivot) noexcept {
    if (tree == nullptr) {
      return {nullptr, nullptr};
    }
    auto& links = Traits::links(*tree);
    Halves halves{};
    if (Traits::is_before(*tree, pivot)) {
      halves = split(links.right, pivot);
      links.right = std::exchange(halves.before, tree);
    } else {
      halves = split(links.left, pivot);
      links.left = std::exchange(halves.after, tree);
    }
    Traits::update(*tree);
    return halves;
  }
  [[nodiscard]] static Node* without(Node* tree, Node& removed) noexcept {
    ISTHMUS_EXPECTS(tree != nullptr);  // otherwise the node is not in the tree
    auto& links = Traits::links(*tree);
    if (tree == &removed) {
      return merged(links.left, links.right);
    }
    auto*& child = Traits::is_before(removed, *tree) ? links.left : links.right;
    child = without(child, removed);
    Traits::update(*tree);
    return tree;
  }
  // All keys of `before` are less than those of `after`.
  [[nodiscard]] static Node* merged(Node* before, Node* after) noexcept {
    if (before == nullptr || after == nullptr) {
      return before == nullptr ? after : before;
    }
    ISTHMUS_EXPECTS(Traits::is_before(*before, *after));
    auto* const top = before->priority < after->priority ? after : before;
    auto& links = Traits::links(*top);
    if (top == before) {
      links.right = merged(links.right, after);
    } else {
      links.left = merged(before, links.left);
    }
    Traits::update(*top);
    return top;
  }

  Node* root_ = nullptr;
};

}  // namespace isthmus
