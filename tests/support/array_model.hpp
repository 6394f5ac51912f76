// SPDX-License-Identifier: Apache-2.0
// A reference model of arrays: values in a vector, of which every view is a copy. Also the fixture
// of the tests that compare `isthmus::array` with it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <isthmus/isthmus.hpp>
#include <numeric>
#include <random>
#include <vector>

#include "support/backends.hpp"
#include "support/eventually.hpp"

namespace support {

using numbers = std::vector<std::int64_t>;

inline std::int64_t product(const numbers& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>{});
}

// Calls `function(index)` for each element in row-major order.
template <class Function>
void for_each_index(const numbers& shape, Function&& function) {
  if (product(shape) == 0) return;
  numbers at(shape.size());
  for (;;) {
    function(at);
    std::size_t axis = shape.size();
    while (axis != 0 && ++at[axis - 1] == shape[axis - 1]) at[--axis] = 0;
    if (axis == 0) return;
  }
}

struct model {
  numbers shape;
  std::vector<std::int32_t> values;  // in row-major order

  static model counting(const numbers& shape) {
    model result{shape, std::vector<std::int32_t>(static_cast<std::size_t>(product(shape)))};
    std::iota(result.values.begin(), result.values.end(), 1);
    return result;
  }
  std::size_t offset_of(const numbers& index) const {
    std::int64_t found = 0;
    for (std::size_t axis = 0; axis < shape.size(); ++axis)
      found = found * shape[axis] + index[axis];
    return static_cast<std::size_t>(found);
  }
  // An array of shape `wanted` whose element at `index` is this array's element at `from(index)`.
  template <class From>
  model picked(const numbers& wanted, From&& from) const {
    model result{wanted, {}};
    for_each_index(
        wanted, [&](const numbers& at) { result.values.push_back(values[offset_of(from(at))]); });
    return result;
  }
  // `chosen` holds the indices to keep of `axis`, for example those of a Python slice.
  model sliced(std::size_t axis, const numbers& chosen) const {
    numbers wanted = shape;
    wanted[axis] = static_cast<std::int64_t>(chosen.size());
    return picked(wanted, [&](numbers at) {
      at[axis] = chosen[static_cast<std::size_t>(at[axis])];
      return at;
    });
  }
  model permuted(const std::vector<std::size_t>& order) const {
    numbers wanted;
    for (const std::size_t axis : order) wanted.push_back(shape[axis]);
    return picked(wanted, [&](const numbers& at) {
      numbers found(at.size());
      for (std::size_t axis = 0; axis < at.size(); ++axis) found[order[axis]] = at[axis];
      return found;
    });
  }
  model broadcast(const numbers& wanted) const {
    const std::size_t more = wanted.size() - shape.size();
    return picked(wanted, [&](const numbers& at) {
      numbers found(at.begin() + static_cast<std::ptrdiff_t>(more), at.end());
      for (std::size_t axis = 0; axis < found.size(); ++axis) {
        if (shape[axis] == 1) found[axis] = 0;
      }
      return found;
    });
  }
  model reshaped(const numbers& wanted) const { return {wanted, values}; }
};

inline im::axes<im::dynamic_rank> axes_of(const numbers& all) {
  return im::axes<im::dynamic_rank>(std::span<const std::int64_t>(all));
}
template <class Array>
numbers shape_of(const Array& of) {
  return {of.shape().begin(), of.shape().end()};
}

// The indices that a Python slice `[first:last:step]` selects of an axis of length `extent`,
// computed one by one.
inline numbers chosen(std::int64_t extent, std::optional<std::int64_t> first,
                      std::optional<std::int64_t> last, std::int64_t step) {
  const std::int64_t lowest = step < 0 ? -1 : 0;
  const std::int64_t highest = step < 0 ? extent - 1 : extent;
  const auto cut = [&](std::int64_t bound) {
    if (bound < 0) bound += extent;
    return std::min(std::max(bound, lowest), highest);
  };
  const std::int64_t from = first ? cut(*first) : (step < 0 ? highest : lowest);
  const std::int64_t to = last ? cut(*last) : (step < 0 ? lowest : highest);
  numbers found;
  for (std::int64_t at = from; step < 0 ? at > to : at < to; at += step) found.push_back(at);
  return found;
}

// Releases what the default pools of its queue keep, because free memory of pools counts as live.
class on_arrays : public on_backend {
 protected:
  void SetUp() override {
    on_backend::SetUp();
    if (!queue_) return;
    for (const im::kind kind : kinds()) trim(queue_, kind);
    leak_checked::SetUp();  // starts the count again
  }
  void TearDown() override {
    if (queue_) {
      EXPECT_TRUE(queue_.fence().wait_for(30s)) << "the queue hangs";
      for (const im::kind kind : kinds()) trim(queue_, kind);
    }
    on_backend::TearDown();
  }
  // Polls, because frees may have to wait for work that has just completed.
  static void trim(const im::queue& queue, im::kind kind) {
    const im::resource pool = im::default_pool(kind, queue);
    const auto is_empty = [&] {
      pool.trim();
      return pool.usage().held == 0;
    };
    EXPECT_TRUE(eventually(is_empty)) << pool.usage().held << " bytes of " << name(kind) << " left";
  }

  im::array_options options() const { return {.queue = queue_}; }
  // The same with `counted` as the resource.
  im::array_options options(const im::resource& counted) const {
    return {.queue = queue_, .resource = counted};
  }
  im::resource counted(im::kind kind) const {
    return im::resource::statistics(im::default_pool(kind, queue_));
  }
  static std::uint64_t live_in(const im::resource& counted) {
    return im::statistics_of(counted).current_count;
  }
  static bool all_freed(const im::resource& counted) {
    return eventually([&] { return live_in(counted) == 0; });
  }
  im::dyn_array make_array(const model& of, im::kind kind) const {
    auto array = im::empty(im::dtype::int32, axes_of(of.shape), kind, options());
    im::copy(array, of.values);
    return array;
  }
  static ::testing::AssertionResult same(const im::dyn_array& got, const model& want) {
    if (shape_of(got) != want.shape) {
      return ::testing::AssertionFailure() << "shape " << im::to_string(got.shape());
    }
    std::vector<std::int32_t> values(got.size());
    im::copy(values, got);
    if (values == want.values) return ::testing::AssertionSuccess();
    const auto at = std::mismatch(values.begin(), values.end(), want.values.begin());
    return ::testing::AssertionFailure()
           << "element " << at.first - values.begin() << " of shape " << im::to_string(got.shape())
           << " and strides " << im::to_string(got.strides()) << " is " << *at.first << ", not "
           << *at.second;
  }
};

}  // namespace support
