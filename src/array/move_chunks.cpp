// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "array/element_move.hpp"
#include "core/sizes.hpp"

namespace isthmus {
namespace {

std::size_t distance(std::ptrdiff_t stride) noexcept {
  return static_cast<std::size_t>(stride < 0 ? -stride : stride);
}

}  // namespace

std::size_t packed_bytes(const ElementMove& move) noexcept {
  auto bytes = move.source_item();
  for (const auto& dimension : move.dimensions) {
    bytes *= dimension.source_stride != 0 ? dimension.count : 1;
  }
  return bytes;
}

PackedSource pack_source(const ElementMove& move, std::byte* packed) noexcept {
  DimensionList<std::size_t> order;
  for (std::size_t i = 0; i < move.dimensions.size(); ++i) {
    if (move.dimensions[i].source_stride != 0) {
      order.append(i);
    }
  }
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return distance(move.dimensions[a].source_stride) > distance(move.dimensions[b].source_stride);
  });
  PackedSource packing{{}, move};
  auto& [read, rest] = packing;
  read = {packed, move.source, move.source_type, move.source_type, {}};
  read.dimensions.assign(order.size(), {});
  rest.source = packed;
  auto packed_stride = signed_of(move.source_item());
  for (std::size_t i = order.size(); i-- > 0;) {
    auto& dimension = rest.dimensions[order[i]];
    const bool is_backwards = dimension.source_stride < 0;
    if (is_backwards) {
      read.source += signed_of(dimension.count - 1) * dimension.source_stride;
      rest.source += signed_of(dimension.count - 1) * packed_stride;
    }
    read.dimensions[i] = {dimension.count, packed_stride,
                          is_backwards ? -dimension.source_stride : dimension.source_stride};
    dimension.source_stride = is_backwards ? -packed_stride : packed_stride;
    packed_stride *= signed_of(dimension.count);
  }
  return {joined(read), joined(rest)};
}

PackedDestination pack_destination(const ElementMove& move, std::byte* packed) noexcept {
  PackedDestination packing{
      move,
      {move.destination, packed, move.destination_type, move.destination_type, move.dimensions}};
  packing.pack.destination = packed;
  auto packed_stride = signed_of(move.destination_item());
  for (std::size_t i = move.dimensions.size(); i-- > 0;) {
    auto& dimension = packing.pack.dimensions[i];
    packing.write.dimensions[i] = {dimension.count, dimension.destination_stride, packed_stride};
    dimension.destination_stride = packed_stride;
    packed_stride *= signed_of(dimension.count);
  }
  return {joined(packing.pack), joined(packing.write)};
}

MoveChunks::MoveChunks(const ElementMove& move, std::size_t max_bytes) noexcept
    : whole_{move}, first_inner_{move.dimensions.size()} {
  const auto max_elements = std::max<std::size_t>(1, max_bytes / move.widest());
  const auto min_first_inner =
      first_inner_ - std::min(first_inner_, StridedCopy::k_max_dimensions - 1);
  while (first_inner_ != min_first_inner &&
         inner_elements_ <= max_elements / move.dimensions[first_inner_ - 1].count) {
    inner_elements_ *= move.dimensions[--first_inner_].count;
  }
  if (first_inner_ != 0) {
    const auto entries = move.dimensions[first_inner_ - 1].count;
    chunk_entries_ = std::min(max_elements / inner_elements_, entries);
    chunks_along_ = (entries + chunk_entries_ - 1) / chunk_entries_;
  }
}

std::size_t MoveChunks::count() const noexcept {
  std::size_t count = chunks_along_;
  for (std::size_t i = 0; i + 1 < first_inner_; ++i) {
    count *= whole_.dimensions[i].count;
  }
  return count;
}

ElementMove MoveChunks::at(std::size_t index) const noexcept {
  auto chunk = whole_;
  if (first_inner_ == 0) {
    return chunk;
  }
  const auto advance_along = [&chunk](const MoveDimension& dimension, std::size_t position) {
    chunk.destination += signed_of(position) * dimension.destination_stride;
    chunk.source += signed_of(position) * dimension.source_stride;
  };
  const auto& dimension = whole_.dimensions[first_inner_ - 1];
  const auto begin = index % chunks_along_ * chunk_entries_;
  advance_along(dimension, begin);
  index /= chunks_along_;
  for (std::size_t i = first_inner_ - 1; i-- > 0;) {
    advance_along(whole_.dimensions[i], index % whole_.dimensions[i].count);
    index /= whole_.dimensions[i].count;
  }
  chunk.dimensions.shorten(0);
  chunk.dimensions.append({std::min(chunk_entries_, dimension.count - begin),
                           dimension.destination_stride, dimension.source_stride});
  for (std::size_t i = first_inner_; i < whole_.dimensions.size(); ++i) {
    chunk.dimensions.append(whole_.dimensions[i]);
  }
  return chunk;
}

std::size_t MoveChunks::bytes() const noexcept {
  return inner_elements_ * chunk_entries_ * whole_.widest();
}

}  // namespace isthmus
