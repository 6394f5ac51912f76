#pragma once
// A list of nodes that were made earlier: nothing here needs memory.

#include <memory>
#include <utility>

namespace isthmus {

// `Node` has a member `Node* next`, which is the list's.
template <class Node>
class chain {
 public:
  chain() noexcept = default;
  chain(const chain&) = delete;
  chain& operator=(const chain&) = delete;
  ~chain() { clear(); }

  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
  void push_back(std::unique_ptr<Node> added) noexcept {
    added->next = nullptr;
    append(*added, *added);
    static_cast<void>(added.release());
  }
  [[nodiscard]] std::unique_ptr<Node> pop_front() noexcept {
    return std::unique_ptr<Node>{std::exchange(first_, first_->next)};
  }
  // Takes all of the other's to its end.
  void splice(chain& other) noexcept {
    if (!other.empty()) {
      append(*other.first_, *other.last_);
      other.first_ = nullptr;
    }
  }
  // One by one: a long list must not need a deep stack.
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
  Node* last_ = nullptr;  // where there is a first
};

}  // namespace isthmus
