#pragma once
// Uses that were found under a lock, where no memory can be had, to be looked at outside it.

#include <array>
#include <cstddef>

#include "memory/use_index.hpp"

namespace isthmus {

// Of plain pointers: nothing is set up for uses that are not found, and as a rule few are.
class found_uses {
 public:
  static constexpr std::size_t k_most = 32;

  found_uses() noexcept {}
  found_uses(const found_uses&) = delete;
  found_uses& operator=(const found_uses&) = delete;
  ~found_uses() {
    for_each([](const ref<event>&, bool) {});
  }
  // At most `k_most`.
  void push_back(const pending_use& found) noexcept {
    all_[count_++] = {ref<event>{found.ended}.detach(), found.what.is_of_others};
  }
  // visit(event, whether it is of the last owner) once for each; may throw.
  template <class Visit>
  void for_each(Visit&& visit) {
    while (visited_ != count_) {
      const auto& each = all_[visited_++];
      visit(ref<event>::adopt(each.ended), each.is_of_others);
    }
  }

 private:
  struct found_use {
    event* ended;  // a reference until it is visited
    bool is_of_others;
  };
  std::array<found_use, k_most> all_;  // up to `count_`
  std::size_t count_ = 0;
  std::size_t visited_ = 0;
};

}  // namespace isthmus
