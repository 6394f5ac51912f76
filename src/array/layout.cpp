// SPDX-License-Identifier: Apache-2.0
#include "array/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "array/bounded_sums.hpp"

namespace isthmus {
namespace {

constexpr std::uint64_t k_max_bytes = std::uint64_t{1} << 61;

std::uint64_t magnitude(std::int64_t stride) noexcept {
  const auto bits = static_cast<std::uint64_t>(stride);
  return stride < 0 ? std::uint64_t{0} - bits : bits;
}

std::string shape_text(const ArrayLayout& layout) {
  std::string text = "(";
  for (const auto& dimension : layout.dimensions) {
    text += fmt::format("{}{}", text.size() == 1 ? "" : ", ", dimension.count);
  }
  return text + (layout.dimensions.size() == 1 ? ",)" : ")");
}

Result<void> check_array(const isthmus_array_t& array, const char* name) {
  ISTHMUS_TRY(check_dtype(array.dtype));
  if (array.dimensions > k_max_array_dimensions) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "the {} has {} dimensions: the limit is {}", name,
                array.dimensions, k_max_array_dimensions);
  }
  if (array.dimensions != 0 && (array.shape == nullptr || array.strides == nullptr)) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "{}->{} is NULL, but the array has {} dimensions: pass one value for each", name,
                array.shape == nullptr ? "shape" : "strides", array.dimensions);
  }
  for (std::size_t i = 0; i < array.dimensions; ++i) {
    if (array.shape[i] < 0) {
      return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                  "the {} has {} elements along dimension {}: use 0 or more", name, array.shape[i],
                  i);
    }
  }
  return {};
}

// Adds the span of a dimension to `bytes_below` or `bytes_above`. Returns false if their sum
// exceeds `k_max_bytes`.
bool add_span(std::int64_t stride, std::int64_t count, std::uint64_t& bytes_below,
              std::uint64_t& bytes_above) {
  const auto gaps = static_cast<std::uint64_t>(count - 1);
  const auto distance = magnitude(stride);
  if (distance != 0 && gaps > k_max_bytes / distance) {
    return false;
  }
  (stride < 0 ? bytes_below : bytes_above) += gaps * distance;
  return bytes_below + bytes_above <= k_max_bytes;
}

Result<void> measure(ArrayLayout& layout, const char* name) {
  if (std::ranges::find(layout.dimensions, 0, &ArrayDimension::count) != layout.dimensions.end()) {
    return {};
  }
  std::uint64_t bytes_below = 0;
  std::uint64_t bytes_above = layout.item();
  for (std::size_t i = 0; i < layout.dimensions.size(); ++i) {
    const auto& dimension = layout.dimensions[i];
    if (!add_span(dimension.stride, dimension.count, bytes_below, bytes_above)) {
      return fail(ISTHMUS_ERROR_OUT_OF_RANGE,
                  "{} elements {} bytes apart in dimension {} of the {} exceed the address space",
                  dimension.count, dimension.stride, i, name);
    }
  }
  layout.first_offset = bytes_below;
  layout.nbytes = bytes_below + bytes_above;
  return {};
}

}  // namespace

Result<ArrayLayout> layout_of(const isthmus_array_t& array, const char* name) {
  ISTHMUS_TRY(check_array(array, name));
  ArrayLayout layout;
  layout.dtype = array.dtype;
  for (std::size_t i = 0; i < array.dimensions; ++i) {
    layout.dimensions.append({array.shape[i], array.strides[i]});
  }
  ISTHMUS_TRY(measure(layout, name));
  return layout;
}

Result<ArrayLayout> broadcast(const ArrayLayout& source_layout, const ArrayLayout& target_layout) {
  const auto rank = source_layout.dimensions.size();
  auto layout = source_layout;
  layout.dimensions = target_layout.dimensions;
  for (auto& dimension : layout.dimensions) {
    dimension.stride = 0;
  }
  // Surplus leading dimensions must have 1 element.
  const auto surplus = rank - std::min(rank, target_layout.dimensions.size());
  bool fits = true;
  for (std::size_t i = 0; i < rank; ++i) {
    const auto& dimension = source_layout.dimensions[i];
    if (i < surplus) {
      fits = fits && dimension.count == 1;
      continue;
    }
    auto& target = layout.dimensions[i + target_layout.dimensions.size() - rank];
    fits = fits && (dimension.count == target.count || dimension.count == 1);
    target.stride = dimension.count == 1 ? 0 : dimension.stride;
  }
  if (!fits) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "a source of shape {} cannot be broadcast to the destination's {}",
                shape_text(source_layout), shape_text(target_layout));
  }
  return layout;
}

namespace {

struct Dimension {
  std::uint64_t stride;
  std::uint64_t gaps;
};

// Returns the dimensions with more than one element, sorted by stride, largest first.
std::vector<Dimension> dimensions_of(const ArrayLayout& layout) {
  std::vector<Dimension> dimensions;
  dimensions.reserve(layout.dimensions.size());
  for (const auto& dimension : layout.dimensions) {
    if (dimension.count > 1) {
      dimensions.push_back(
          {magnitude(dimension.stride), static_cast<std::uint64_t>(dimension.count - 1)});
    }
  }
  std::sort(dimensions.begin(), dimensions.end(),
            [](const Dimension& a, const Dimension& b) { return a.stride > b.stride; });
  return dimensions;
}

// Whether each stride is at least the span of all dimensions with smaller strides.
bool is_nested(const std::vector<Dimension>& dimensions, std::size_t item) noexcept {
  std::uint64_t inner_span = item;
  for (std::size_t i = dimensions.size(); i-- > 0;) {
    if (dimensions[i].stride < inner_span) {
      return false;
    }
    inner_span += dimensions[i].gaps * dimensions[i].stride;
  }
  return true;
}

// Whether two elements can share bytes if their indices are equal along the dimensions before
// `first`, differ along `first`, and are arbitrary along the dimensions after it.
SumAnswer can_share_bytes_from(const std::vector<Dimension>& dimensions, std::size_t first,
                               std::size_t item) {
  std::vector<BoundedTerm> terms{{1, 2 * (item - 1)}};
  std::uint64_t target = item - 1;
  terms.push_back({dimensions[first].stride, dimensions[first].gaps - 1});
  for (std::size_t i = first + 1; i < dimensions.size(); ++i) {
    terms.push_back({dimensions[i].stride, 2 * dimensions[i].gaps});
    target += dimensions[i].gaps * dimensions[i].stride;
  }
  if (target < dimensions[first].stride) {
    return SumAnswer::no;
  }
  return can_sum_to(std::move(terms), target - dimensions[first].stride);
}

}  // namespace

Result<void> check_disjoint(const ArrayLayout& destination) {
  if (destination.is_empty()) {
    return {};
  }
  const auto dimensions = dimensions_of(destination);
  const auto item = destination.item();
  if (is_nested(dimensions, item)) {
    return {};
  }
  for (std::size_t first = 0; first < dimensions.size(); ++first) {
    const auto answer = can_share_bytes_from(dimensions, first, item);
    if (answer != SumAnswer::no) {
      return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                  "elements overlap in the destination, {} of shape {} with a stride of {} bytes: "
                  "copy to an array in which {} elements share bytes",
                  facts_of(destination.dtype).name, shape_text(destination),
                  dimensions[first].stride, answer == SumAnswer::yes ? "no" : "provably no");
    }
  }
  return {};
}

bool may_share_bytes(const ArrayLayout& one, std::uintptr_t one_address, const ArrayLayout& other,
                     std::uintptr_t other_address) {
  if (one.is_empty() || other.is_empty() || one_address >= other_address + other.nbytes ||
      other_address >= one_address + one.nbytes) {
    return false;
  }
  // Byte addresses of `one` are its lowest address plus multiples of strides; those of `other` are
  // its highest address minus multiples of strides.
  std::vector<BoundedTerm> terms{{1, one.item() - 1 + other.item() - 1}};
  for (const auto* layout : {&one, &other}) {
    for (const auto& dimension : dimensions_of(*layout)) {
      terms.push_back({dimension.stride, dimension.gaps});
    }
  }
  return can_sum_to(std::move(terms), other_address + other.nbytes - 1 - one_address) !=
         SumAnswer::no;
}

}  // namespace isthmus
