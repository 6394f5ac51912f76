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
  auto bytes = move.from_item();
  for (const auto& along : move.dimensions) {
    bytes *= along.from != 0 ? along.count : 1;
  }
  return bytes;
}

PackedSource pack_source(const ElementMove& move, std::byte* packed) noexcept {
  DimensionList<std::size_t> order;
  for (std::size_t i = 0; i < move.dimensions.size(); ++i) {
    if (move.dimensions[i].from != 0) {
      order.append(i);
    }
  }
  std::sort(order.begin(), order.end(), [&](std::size_t one, std::size_t next) {
    return distance(move.dimensions[one].from) > distance(move.dimensions[next].from);
  });
  PackedSource made{{}, move};
  auto& [read, rest] = made;
  read = {packed, move.from, move.from_type, move.from_type, {}};
  read.dimensions.assign(order.size(), {});
  rest.from = packed;
  auto inside = signed_of(move.from_item());
  for (std::size_t at = order.size(); at-- > 0;) {
    auto& along = rest.dimensions[order[at]];
    const bool is_backwards = along.from < 0;
    if (is_backwards) {
      read.from += signed_of(along.count - 1) * along.from;
      rest.from += signed_of(along.count - 1) * inside;
    }
    read.dimensions[at] = {along.count, inside, is_backwards ? -along.from : along.from};
    along.from = is_backwards ? -inside : inside;
    inside *= signed_of(along.count);
  }
  return {joined(read), joined(rest)};
}

PackedDestination pack_destination(const ElementMove& move, std::byte* packed) noexcept {
  PackedDestination made{move, {move.to, packed, move.to_type, move.to_type, move.dimensions}};
  made.first.to = packed;
  auto inside = signed_of(move.to_item());
  for (std::size_t i = move.dimensions.size(); i-- > 0;) {
    auto& along = made.first.dimensions[i];
    made.write.dimensions[i] = {along.count, along.to, inside};
    along.to = inside;
    inside *= signed_of(along.count);
  }
  return {joined(made.first), joined(made.write)};
}

MovePieces::MovePieces(const ElementMove& move, std::size_t most_bytes) noexcept
    : whole_{move}, cut_{move.dimensions.size()} {
  const auto most = std::max<std::size_t>(1, most_bytes / move.widest());
  const auto fewest = cut_ - std::min(cut_, StridedCopy::k_most_dimensions - 1);
  while (cut_ != fewest && inside_ <= most / move.dimensions[cut_ - 1].count) {
    inside_ *= move.dimensions[--cut_].count;
  }
  if (cut_ != 0) {
    const auto along = move.dimensions[cut_ - 1].count;
    step_ = std::min(most / inside_, along);
    pieces_ = (along + step_ - 1) / step_;
  }
}

std::size_t MovePieces::count() const noexcept {
  std::size_t all = pieces_;
  for (std::size_t i = 0; i + 1 < cut_; ++i) {
    all *= whole_.dimensions[i].count;
  }
  return all;
}

ElementMove MovePieces::at(std::size_t index) const noexcept {
  auto piece = whole_;
  if (cut_ == 0) {
    return piece;
  }
  const auto move_to = [&piece](const MoveDimension& along, std::size_t step) {
    piece.to += signed_of(step) * along.to;
    piece.from += signed_of(step) * along.from;
  };
  const auto& along = whole_.dimensions[cut_ - 1];
  const auto begin = index % pieces_ * step_;
  move_to(along, begin);
  index /= pieces_;
  for (std::size_t i = cut_ - 1; i-- > 0;) {
    move_to(whole_.dimensions[i], index % whole_.dimensions[i].count);
    index /= whole_.dimensions[i].count;
  }
  piece.dimensions.shorten(0);
  piece.dimensions.append({std::min(step_, along.count - begin), along.to, along.from});
  for (std::size_t i = cut_; i < whole_.dimensions.size(); ++i) {
    piece.dimensions.append(whole_.dimensions[i]);
  }
  return piece;
}

std::size_t MovePieces::bytes() const noexcept { return inside_ * step_ * whole_.widest(); }

}  // namespace isthmus
