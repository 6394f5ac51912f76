// SPDX-License-Identifier: Apache-2.0
// Axes and layouts without memory: up to 64 axes, and the results of functions that throw nothing.
#include <gtest/gtest.h>

#include <isthmus/layout.hpp>
#include <numeric>
#include <vector>

namespace {

namespace im = isthmus;
using dynamic_axes = im::axes<im::dynamic_rank>;
using dynamic_layout = im::layout<im::dynamic_rank>;

dynamic_axes counting(std::size_t count) {
  dynamic_axes numbers;
  for (std::size_t axis = 0; axis < count; ++axis) {
    numbers.push_back(static_cast<std::int64_t>(axis));
  }
  return numbers;
}

// Sizes on both sides of the number of axes that need no allocation.
TEST(axes, are_copied_and_moved) {
  for (const std::size_t count : {0U, 1U, 3U, 4U, 5U, 8U, 9U, 63U, 64U}) {
    const dynamic_axes numbers = counting(count);
    ASSERT_EQ(numbers.size(), count);
    dynamic_axes copy = numbers;
    EXPECT_EQ(copy, numbers);
    const dynamic_axes moved = std::move(copy);
    EXPECT_EQ(moved, numbers);
    for (const std::size_t other_count : {0U, 4U, 5U, 64U}) {
      dynamic_axes assigned = counting(other_count);
      assigned = numbers;
      EXPECT_EQ(assigned, numbers);
      dynamic_axes move_assigned = counting(other_count);
      move_assigned = std::move(assigned);
      EXPECT_EQ(move_assigned, numbers);
    }
    dynamic_axes& same = const_cast<dynamic_axes&>(numbers);
    same = numbers;
    EXPECT_EQ(numbers, counting(count));
  }
}

TEST(axes, are_inserted_and_erased) {
  for (const std::size_t count : {0U, 3U, 4U, 63U}) {
    for (std::size_t axis = 0; axis <= count; axis += count / 3 + 1) {
      dynamic_axes numbers = counting(count);
      numbers.insert(axis, -7);
      std::vector<std::int64_t> known(count);
      std::iota(known.begin(), known.end(), 0);
      known.insert(known.begin() + static_cast<std::ptrdiff_t>(axis), -7);
      EXPECT_TRUE(std::equal(numbers.begin(), numbers.end(), known.begin(), known.end()));
      numbers.erase(axis);
      EXPECT_EQ(numbers, counting(count));
    }
  }
}

TEST(axes, are_at_most_64) {
  dynamic_axes numbers = counting(64);
  const auto fails = [](auto&& call) {
    try {
      call();
      ADD_FAILURE() << "did not throw";
    } catch (const im::error& failed) {
      EXPECT_EQ(failed.status(), im::status::invalid_argument);
      EXPECT_NE(std::string(failed.what()).find("65 axes: the limit is 64"), std::string::npos);
    }
  };
  fails([&] { numbers.push_back(1); });
  fails([&] { numbers.insert(0, 1); });
  fails([&] { numbers.resize(65); });
  EXPECT_EQ(numbers, counting(64));
}

TEST(layouts, have_up_to_64_axes) {
  dynamic_axes shape = counting(64);
  for (std::int64_t& extent : shape) extent = extent < 62 ? 1 : 3;
  const dynamic_layout dense = dynamic_layout::dense(shape, 8);
  EXPECT_EQ(dense.count(), 9);
  EXPECT_EQ(dense.transposed().transposed().strides, dense.strides);
  dynamic_axes order = counting(64);
  std::reverse(order.begin(), order.end());
  EXPECT_EQ(dense.permuted(order).shape, dense.transposed().shape);
  order[0] = order[1];
  EXPECT_THROW((void)dense.permuted(order), im::error);
  const auto flat = dense.try_reshape(im::axes<1>{9}, 8);
  ASSERT_TRUE(flat);
  EXPECT_EQ(flat->strides, im::axes<1>{8});
}

TEST(layouts, report_what_needs_a_copy) {
  const auto rows = im::layout<2>::dense({3, 4}, 4);
  EXPECT_TRUE(rows.try_reshape(im::axes<3>{3, 2, 2}, 4));
  EXPECT_FALSE(rows.transposed().try_reshape(im::axes<1>{12}, 4));
  EXPECT_EQ(rows.transposed().try_reshape(im::axes<3>{2, 2, 3}, 4)->strides,
            (im::axes<3>{8, 4, 16}));
  // Extents of 1 at the end continue the last stride, or that of a single element.
  EXPECT_EQ(rows.transposed().try_reshape(im::axes<3>{4, 3, 1}, 4)->strides,
            (im::axes<3>{4, 16, 16}));
  EXPECT_EQ((im::layout<1>{{1}, {100}, 0}.try_reshape(im::axes<1>{1}, 4)->strides), im::axes<1>{4});
}

TEST(layouts, broadcast_or_do_not) {
  const im::layout<2> column{{3, 1}, {16, 4}, 8};
  const auto wide = column.try_broadcast(im::axes<3>{5, 3, 4});
  ASSERT_TRUE(wide);
  EXPECT_EQ(wide->strides, (im::axes<3>{0, 16, 0}));
  EXPECT_EQ(wide->offset, 8);
  EXPECT_FALSE(column.try_broadcast(im::axes<2>{4, 4}));
  EXPECT_FALSE(column.try_broadcast(im::axes<1>{3}));
  EXPECT_TRUE(column.try_broadcast(im::axes<2>{3, std::int64_t{1} << 62})) << "has no limit";
}

TEST(layouts, that_are_column_major) {
  const auto rows = im::layout<2>::dense({3, 4}, 4);
  EXPECT_FALSE(rows.is_column_major(4));
  EXPECT_TRUE(rows.transposed().is_column_major(4));
  EXPECT_TRUE((im::layout<2>::dense({3, 1}, 4).is_column_major(4)));
  EXPECT_TRUE((im::layout<2>{{3, 0}, {7, 9}, 0}.is_column_major(4))) << "has no elements";
}

TEST(layouts, have_checked_bounds) {
  constexpr std::int64_t k_max = std::numeric_limits<std::int64_t>::max();
  const auto range_of = [](const im::layout<2>& layout) { return layout.checked_byte_range(4); };
  const auto range = range_of({{3, 4}, {-16, 4}, 32});
  ASSERT_TRUE(range);
  EXPECT_EQ(range->begin, 0);
  EXPECT_EQ(range->end, 48);
  EXPECT_EQ(range_of({{0, 4}, {100, 4}, 0})->end, 16) << "an extent of 0 counts as 1";
  EXPECT_FALSE(range_of({{3, 1}, {k_max, 0}, 0}));
  EXPECT_FALSE(range_of({{2, 2}, {k_max, 1}, 0}));
  EXPECT_FALSE(range_of({{2, 1}, {k_max, 0}, 0})) << "the element ends past the limit";
  EXPECT_FALSE(range_of({{2, 2}, {k_max - 8, 16 - k_max}, 0})) << "the size does not fit";
}

}  // namespace
