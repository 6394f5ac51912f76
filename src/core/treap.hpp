// SPDX-License-Identifier: Apache-2.0
#pragma once
// A sorted tree of nodes that were allocated earlier, so that no operation allocates. Not
// thread-safe.
//
// A treap (Seidel and Aragon, 1996): a search tree by key and a heap by priority. Random-looking
// priorities keep its depth around 2 ln n, whatever the order of the keys.

#include <cstdint>
#include <utility>

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
  // Pre: the node is in the tree, with the key that it was inserted with.
  void erase(Node& gone) noexcept { root_ = without(root_, gone); }

 private:
  struct Halves {
    Node* before;
    Node* after;
  };

  [[nodiscard]] static Node* inserted(Node* out, Node& added) noexcept {
    if (out == nullptr || out->priority < added.priority) {
      const auto [before, after] = split(out, added);
      Traits::links(added) = {before, after};
      Traits::update(added);
      return &added;
    }
    auto& below = Traits::links(*out);
    auto*& side = Traits::is_before(added, *out) ? below.left : below.right;
    side = inserted(side, added);
    Traits::update(*out);
    return out;
  }
  [[nodiscard]] static Halves split(Node* whole, const Node& at) noexcept {
    if (whole == nullptr) {
      return {nullptr, nullptr};
    }
    auto& below = Traits::links(*whole);
    Halves made{};
    if (Traits::is_before(*whole, at)) {
      made = split(below.right, at);
      below.right = std::exchange(made.before, whole);
    } else {
      made = split(below.left, at);
      below.left = std::exchange(made.after, whole);
    }
    Traits::update(*whole);
    return made;
  }
  [[nodiscard]] static Node* without(Node* in, Node& gone) noexcept {
    auto& below = Traits::links(*in);
    if (in == &gone) {
      return merged(below.left, below.right);
    }
    auto*& side = Traits::is_before(gone, *in) ? below.left : below.right;
    side = without(side, gone);
    Traits::update(*in);
    return in;
  }
  // Pre: all keys of `before` are less than those of `after`.
  [[nodiscard]] static Node* merged(Node* before, Node* after) noexcept {
    if (before == nullptr || after == nullptr) {
      return before == nullptr ? after : before;
    }
    auto* const top = before->priority < after->priority ? after : before;
    auto& below = Traits::links(*top);
    if (top == before) {
      below.right = merged(below.right, after);
    } else {
      below.left = merged(before, below.left);
    }
    Traits::update(*top);
    return top;
  }

  Node* root_ = nullptr;
};

}  // namespace isthmus
