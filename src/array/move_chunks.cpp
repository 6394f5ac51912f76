// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "array/element_move.hpp"

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
  std::sort(order.begin(), order.end(), [&](std::size_t one, std::size_t next) {
    return distance(move.dimensions[one].source_stride) >
           distance(move.dimensions[next].source_stride);
  });
  PackedSource packing{{}, move};
  auto& [read, rest] = packing;
  read = {packed, move.source, move.source_type, move.source_type, {}};
  read.dimensions.assign(order.size(), {});
  rest.source = packed;
  auto inside = signed_of(move.source_item());
  for (std::size_t at = order.size(); at-- > 0;) {
    auto& dimension = rest.dimensions[order[at]];
    const bool is_backwards = dimension.source_stride < 0;
    if (is_backwards) {
      read.source += signed_of(dimension.count - 1) * dimension.source_stride;
      rest.source += signed_of(dimension.count - 1) * inside;
    }
    read.dimensions[at] = {dimension.count, inside,
                           is_backwards ? -dimension.source_stride : dimension.source_stride};
    dimension.source_stride = is_backwards ? -inside : inside;
    inside *= signed_of(dimension.count);
  }
  return {joined(read), joined(rest)};
}

PackedDestination pack_destination(const ElementMove& move, std::byte* packed) noexcept {
  PackedDestination packing{
      move,
      {move.destination, packed, move.destination_type, move.destination_type, move.dimensions}};
  packing.first.destination = packed;
  auto inside = signed_of(move.destination_item());
  for (std::size_t i = move.dimensions.size(); i-- > 0;) {
    auto& dimension = packing.first.dimensions[i];
    packing.write.dimensions[i] = {dimension.count, dimension.destination_stride, inside};
    dimension.destination_stride = inside;
    inside *= signed_of(dimension.count);
  }
  return {joined(packing.first), joined(packing.write)};
}

MoveChunks::MoveChunks(const ElementMove& move, std::size_t max_bytes) noexcept
    : whole_{move}, cut_{move.dimensions.size()} {
  const auto max_elements = std::max<std::size_t>(1, max_bytes / move.widest());
  const auto min_cut = cut_ - std::min(cut_, StridedCopy::k_max_dimensions - 1);
  while (cut_ != min_cut && inside_ <= max_elements / move.dimensions[cut_ - 1].count) {
    inside_ *= move.dimensions[--cut_].count;
  }
  if (cut_ != 0) {
    const auto entries = move.dimensions[cut_ - 1].count;
    step_ = std::min(max_elements / inside_, entries);
    chunks_ = (entries + step_ - 1) / step_;
  }
}

std::size_t MoveChunks::count() const noexcept {
  std::size_t all = chunks_;
  for (std::size_t i = 0; i + 1 < cut_; ++i) {
    all *= whole_.dimensions[i].count;
  }
  return all;
}

ElementMove MoveChunks::at(std::size_t index) const noexcept {
  auto piece = whole_;
  if (cut_ == 0) {
    return piece;
  }
  const auto move_to = [&piece](const MoveDimension& dimension, std::size_t step) {
    piece.destination += signed_of(step) * dimension.destination_stride;
    piece.source += signed_of(step) * dimension.source_stride;
  };
  const auto& dimension = whole_.dimensions[cut_ - 1];
  const auto begin = index % chunks_ * step_;
  move_to(dimension, begin);
  index /= chunks_;
  for (std::size_t i = cut_ - 1; i-- > 0;) {
    move_to(whole_.dimensions[i], index % whole_.dimensions[i].count);
    index /= whole_.dimensions[i].count;
  }
  piece.dimensions.shorten(0);
  piece.dimensions.append({std::min(step_, dimension.count - begin), dimension.destination_stride,
                           dimension.source_stride});
  for (std::size_t i = cut_; i < whole_.dimensions.size(); ++i) {
    piece.dimensions.append(whole_.dimensions[i]);
  }
  return piece;
}

std::size_t MoveChunks::bytes() const noexcept { return inside_ * step_ * whole_.widest(); }

}  // namespace isthmus
