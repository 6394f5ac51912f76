// SPDX-License-Identifier: Apache-2.0
#include "core/strided.hpp"

#include <algorithm>

#include "core/row_walk.hpp"
#include "core/share_out.hpp"
#include "core/sizes.hpp"

namespace isthmus {

std::size_t strided_copy::runs() const noexcept {
  std::size_t all = 1;
  for (std::size_t i = 0; i < rank; ++i) {
    all *= dimensions[i].count;
  }
  return all;
}

std::size_t strided_copy::extent(side of) const noexcept {
  std::size_t end = width;
  for (std::size_t i = 0; i < rank; ++i) {
    end += (dimensions[i].count - 1) * dimensions[i].stride(of);
  }
  return end;
}

void strided_copy::remove(std::size_t index) noexcept {
  std::move(dimensions.begin() + index + 1, dimensions.begin() + rank, dimensions.begin() + index);
  --rank;
}

namespace {

bool continues(const strided_dimension& outer, const strided_dimension& inner, side of) noexcept {
  return outer.stride(of) == inner.stride(of) * inner.count;
}

// Joins the first two contiguous dimensions. False if there are none.
bool join_two(strided_copy& what) noexcept {
  for (std::size_t i = 0; i + 1 < what.rank; ++i) {
    const auto outer = what.dimensions[i];
    auto& inner = what.dimensions[i + 1];
    if (continues(outer, inner, side::destination) && continues(outer, inner, side::source)) {
      inner.count *= outer.count;
      what.remove(i);
      return true;
    }
  }
  return false;
}

bool join_run(strided_copy& what) noexcept {
  if (what.rank == 0) {
    return false;
  }
  const auto& inner = what.dimensions[what.rank - 1];
  if (inner.destination_stride != what.width || inner.source_stride != what.width) {
    return false;
  }
  what.width *= inner.count;
  --what.rank;
  return true;
}

}  // namespace

strided_copy simplest(strided_copy what, side by) noexcept {
  for (std::size_t i = what.rank; i-- > 0;) {
    if (what.dimensions[i].count == 1) {
      what.remove(i);
    }
  }
  const auto other = by == side::source ? side::destination : side::source;
  std::sort(what.dimensions.begin(), what.dimensions.begin() + what.rank,
            [=](const strided_dimension& one, const strided_dimension& next) {
              return one.stride(by) != next.stride(by) ? one.stride(by) > next.stride(by)
                                                       : one.stride(other) > next.stride(other);
            });
  while (join_run(what) || join_two(what)) {
  }
  return what;
}

namespace {

void add_runs(const strided_copy& what, std::size_t depth, copy_range at,
              std::vector<copy_range>& into) {
  if (depth == what.rank) {
    into.push_back(at);
    return;
  }
  const auto& along = what.dimensions[depth];
  for (std::size_t i = 0; i < along.count; ++i) {
    add_runs(what, depth + 1, at, into);
    at.destination_offset += along.destination_stride;
    at.source_offset += along.source_stride;
  }
}

}  // namespace

std::vector<copy_range> list_runs(const strided_copy& what) {
  std::vector<copy_range> all;
  all.reserve(what.runs());
  add_runs(what, 0, {0, 0, what.width}, all);
  return all;
}

namespace {

// Copies runs [begin, end), counted through all dimensions. Pre: there is a dimension.
void copy_runs(const strided_copy& what, std::size_t begin, std::size_t end,
               bool past_caches) noexcept {
  const auto& rows = what.dimensions[what.rank - 1];
  std::array<move_dimension, strided_copy::k_most_dimensions> outer;
  for (std::size_t i = 0; i + 1 < what.rank; ++i) {
    const auto& along = what.dimensions[i];
    outer[i] = {along.count, static_cast<std::ptrdiff_t>(along.destination_stride),
                static_cast<std::ptrdiff_t>(along.source_stride)};
  }
  row_walk<outer.size()> at{std::span{outer}.first(what.rank - 1), begin / rows.count};
  auto first = begin % rows.count;
  for (auto left = end - begin; left != 0; at.next()) {
    const auto count = std::min(rows.count - first, left);
    copy_rows_alone({static_cast<std::byte*>(what.destination) + at.to() +
                         static_cast<std::ptrdiff_t>(first * rows.destination_stride),
                     rows.destination_stride,
                     static_cast<const std::byte*>(what.source) + at.from() +
                         static_cast<std::ptrdiff_t>(first * rows.source_stride),
                     rows.source_stride, what.width, count},
                    past_caches);
    left -= count;
    first = 0;
  }
}

}  // namespace

void copy_strided(const strided_copy& what) noexcept {
  const auto nbytes = what.bytes();
  if (what.rank == 0) {
    copy_bytes(what.destination, what.source, what.width);
  } else if (nbytes < k_large_bytes) {
    copy_runs(what, 0, what.runs(), false);
  } else {
    share_out(nbytes, [&what](std::size_t at, std::size_t n) {
      copy_runs(what, at / what.width, (at + n) / what.width, true);
    });
  }
}

}  // namespace isthmus
