// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "array/element_move.hpp"

namespace isthmus {
namespace {

std::size_t distance(std::ptrdiff_t stride) noexcept {
  return static_cast<std::size_t>(stride < 0 ? -stride : stride);
}

}  // namespace

std::size_t packed_bytes(const element_move& what) noexcept {
  auto bytes = what.from_item();
  for (const auto& along : what.dimensions) {
    bytes *= along.from != 0 ? along.count : 1;
  }
  return bytes;
}

packed_source pack_source(const element_move& what, std::byte* packed) noexcept {
  dimension_list<std::size_t> order;
  for (std::size_t i = 0; i < what.dimensions.size(); ++i) {
    if (what.dimensions[i].from != 0) {
      order.append(i);
    }
  }
  std::sort(order.begin(), order.end(), [&](std::size_t one, std::size_t next) {
    return distance(what.dimensions[one].from) > distance(what.dimensions[next].from);
  });
  packed_source made{{}, what};
  auto& [read, rest] = made;
  read = {packed, what.from, what.from_type, what.from_type, {}};
  read.dimensions.assign(order.size(), {});
  rest.from = packed;
  auto inside = signed_of(what.from_item());
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

packed_destination pack_destination(const element_move& what, std::byte* packed) noexcept {
  packed_destination made{what, {what.to, packed, what.to_type, what.to_type, what.dimensions}};
  made.first.to = packed;
  auto inside = signed_of(what.to_item());
  for (std::size_t i = what.dimensions.size(); i-- > 0;) {
    auto& along = made.first.dimensions[i];
    made.write.dimensions[i] = {along.count, along.to, inside};
    along.to = inside;
    inside *= signed_of(along.count);
  }
  return {joined(made.first), joined(made.write)};
}

move_pieces::move_pieces(const element_move& what, std::size_t most_bytes) noexcept
    : whole_{what}, cut_{what.dimensions.size()} {
  const auto most = std::max<std::size_t>(1, most_bytes / what.widest());
  const auto fewest = cut_ - std::min(cut_, strided_copy::k_most_dimensions - 1);
  while (cut_ != fewest && inside_ <= most / what.dimensions[cut_ - 1].count) {
    inside_ *= what.dimensions[--cut_].count;
  }
  if (cut_ != 0) {
    const auto along = what.dimensions[cut_ - 1].count;
    step_ = std::min(most / inside_, along);
    pieces_ = (along + step_ - 1) / step_;
  }
}

std::size_t move_pieces::count() const noexcept {
  std::size_t all = pieces_;
  for (std::size_t i = 0; i + 1 < cut_; ++i) {
    all *= whole_.dimensions[i].count;
  }
  return all;
}

element_move move_pieces::at(std::size_t index) const noexcept {
  auto piece = whole_;
  if (cut_ == 0) {
    return piece;
  }
  const auto move_to = [&piece](const move_dimension& along, std::size_t by) {
    piece.to += signed_of(by) * along.to;
    piece.from += signed_of(by) * along.from;
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

std::size_t move_pieces::bytes() const noexcept { return inside_ * step_ * whole_.widest(); }

}  // namespace isthmus
