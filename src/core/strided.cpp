// SPDX-License-Identifier: Apache-2.0
#include "core/strided.hpp"

#include <algorithm>

#include "core/expects.hpp"
#include "core/row_walk.hpp"
#include "core/share_out.hpp"
#include "core/sizes.hpp"

namespace isthmus {

std::size_t StridedCopy::runs() const noexcept {
  std::size_t count = 1;
  for (std::size_t i = 0; i < rank; ++i) {
    count *= dimensions[i].count;
  }
  return count;
}

std::size_t StridedCopy::extent(Side side) const noexcept {
  std::size_t end = width;
  for (std::size_t i = 0; i < rank; ++i) {
    end += (dimensions[i].count - 1) * dimensions[i].stride(side);
  }
  return end;
}

void StridedCopy::remove(std::size_t index) noexcept {
  std::move(dimensions.begin() + index + 1, dimensions.begin() + rank, dimensions.begin() + index);
  --rank;
}

namespace {

bool continues(const StridedDimension& outer, const StridedDimension& inner, Side side) noexcept {
  return outer.stride(side) == inner.stride(side) * inner.count;
}

// Joins the first two contiguous dimensions. False if no two are contiguous.
bool join_two(StridedCopy& copy) noexcept {
  for (std::size_t i = 0; i + 1 < copy.rank; ++i) {
    const auto outer = copy.dimensions[i];
    auto& inner = copy.dimensions[i + 1];
    if (continues(outer, inner, Side::destination) && continues(outer, inner, Side::source)) {
      inner.count *= outer.count;
      copy.remove(i);
      return true;
    }
  }
  return false;
}

bool join_run(StridedCopy& copy) noexcept {
  if (copy.rank == 0) {
    return false;
  }
  const auto& inner = copy.dimensions[copy.rank - 1];
  if (inner.destination_stride != copy.width || inner.source_stride != copy.width) {
    return false;
  }
  copy.width *= inner.count;
  --copy.rank;
  return true;
}

}  // namespace

StridedCopy simplified(StridedCopy copy, Side side) noexcept {
  for (std::size_t i = copy.rank; i-- > 0;) {
    if (copy.dimensions[i].count == 1) {
      copy.remove(i);
    }
  }
  const auto other_side = side == Side::source ? Side::destination : Side::source;
  std::sort(copy.dimensions.begin(), copy.dimensions.begin() + copy.rank,
            [=](const StridedDimension& a, const StridedDimension& b) {
              return a.stride(side) != b.stride(side) ? a.stride(side) > b.stride(side)
                                                      : a.stride(other_side) > b.stride(other_side);
            });
  while (join_run(copy) || join_two(copy)) {
  }
  return copy;
}

namespace {

void add_runs(const StridedCopy& copy, std::size_t depth, CopyRange run,
              std::vector<CopyRange>& runs) {
  if (depth == copy.rank) {
    runs.push_back(run);
    return;
  }
  const auto& dimension = copy.dimensions[depth];
  for (std::size_t i = 0; i < dimension.count; ++i) {
    add_runs(copy, depth + 1, run, runs);
    run.destination_offset += dimension.destination_stride;
    run.source_offset += dimension.source_stride;
  }
}

}  // namespace

std::vector<CopyRange> list_runs(const StridedCopy& copy) {
  std::vector<CopyRange> runs;
  runs.reserve(copy.runs());
  add_runs(copy, 0, {0, 0, copy.width}, runs);
  return runs;
}

namespace {

// Copies runs [begin, end), counted through all dimensions.
void copy_runs(const StridedCopy& copy, std::size_t begin, std::size_t end,
               bool bypass_caches) noexcept {
  ISTHMUS_EXPECTS(copy.rank > 0);
  const auto& rows = copy.dimensions[copy.rank - 1];
  std::array<MoveDimension, StridedCopy::k_max_dimensions> outer;
  for (std::size_t i = 0; i + 1 < copy.rank; ++i) {
    const auto& dimension = copy.dimensions[i];
    outer[i] = {dimension.count, static_cast<std::ptrdiff_t>(dimension.destination_stride),
                static_cast<std::ptrdiff_t>(dimension.source_stride)};
  }
  RowWalk<outer.size()> walk{std::span{outer}.first(copy.rank - 1), begin / rows.count};
  auto first = begin % rows.count;
  for (auto remaining = end - begin; remaining != 0; walk.next()) {
    const auto count = std::min(rows.count - first, remaining);
    copy_rows_on_this_thread(
        {static_cast<std::byte*>(copy.destination) + walk.destination_offset() +
             static_cast<std::ptrdiff_t>(first * rows.destination_stride),
         rows.destination_stride,
         static_cast<const std::byte*>(copy.source) + walk.source_offset() +
             static_cast<std::ptrdiff_t>(first * rows.source_stride),
         rows.source_stride, copy.width, count},
        bypass_caches);
    remaining -= count;
    first = 0;
  }
}

}  // namespace

void copy_strided(const StridedCopy& copy) noexcept {
  const auto nbytes = copy.bytes();
  if (copy.rank == 0) {
    copy_bytes(copy.destination, copy.source, copy.width);
  } else if (nbytes < k_large_bytes) {
    copy_runs(copy, 0, copy.runs(), false);
  } else {
    share_out(nbytes, [&copy](std::size_t begin, std::size_t n) {
      copy_runs(copy, begin / copy.width, (begin + n) / copy.width, true);
    });
  }
}

}  // namespace isthmus
