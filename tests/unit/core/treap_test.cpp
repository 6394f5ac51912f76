// SPDX-License-Identifier: Apache-2.0
// The tree, compared with a sorted set, and its depth.

#include "core/treap.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <vector>

#include "core/hash.hpp"

namespace isthmus {
namespace {

struct number {
  int key = 0;
  std::uint32_t priority = 0;
  int count = 0;  // of nodes in this subtree
  TreeLinks<number> links{};
};

struct number_traits {
  static TreeLinks<number>& links(number& of) { return of.links; }
  static bool is_before(const number& a, const number& b) { return a.key < b.key; }
  static void update(number& above) {
    above.count = 1;
    for (const auto* below : {above.links.left, above.links.right}) {
      above.count += below != nullptr ? below->count : 0;
    }
  }
};

using tree = Treap<number, number_traits>;

void list(const number* top, std::vector<int>& into) {
  if (top != nullptr) {
    list(top->links.left, into);
    into.push_back(top->key);
    list(top->links.right, into);
  }
}

int depth(const number* top) {
  return top == nullptr ? 0 : 1 + std::max(depth(top->links.left), depth(top->links.right));
}

std::vector<number> numbers(int count) {
  std::vector<number> all(static_cast<std::size_t>(count));
  for (int each = 0; each < count; ++each) {
    auto& made = all[static_cast<std::size_t>(each)];
    made.key = each;
    made.priority = static_cast<std::uint32_t>(hash_of(static_cast<std::uint64_t>(each)) >> 32);
  }
  return all;
}

TEST(treap, has_what_a_set_has) {
  auto all = numbers(200);
  std::mt19937 random{5};
  tree made;
  std::set<int> known;
  for (int step = 0; step < 5000; ++step) {
    auto& which = all[random() % all.size()];
    if (known.insert(which.key).second) {
      made.insert(which);
    } else {
      known.erase(which.key);
      made.erase(which);
    }
    std::vector<int> found;
    list(made.root(), found);
    ASSERT_TRUE(std::ranges::equal(found, known)) << step;
    ASSERT_EQ(made.root() == nullptr ? 0 : made.root()->count, static_cast<int>(known.size()));
  }
}

TEST(treap, stays_shallow_where_keys_come_in_order) {
  for (const int count : {100, 10'000, 100'000}) {
    auto all = numbers(count);
    tree made;
    for (auto& each : all) {
      made.insert(each);
    }
    EXPECT_LT(depth(made.root()), 5 * std::log(count));
    for (int each = 0; each < count; each += 2) {
      made.erase(all[static_cast<std::size_t>(each)]);
    }
    EXPECT_EQ(made.root()->count, count / 2);
    EXPECT_LT(depth(made.root()), 5 * std::log(count));
  }
}

}  // namespace
}  // namespace isthmus
