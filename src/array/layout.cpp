#include "array/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "array/bounded_sums.hpp"

namespace isthmus {
namespace {

constexpr std::uint64_t k_most_bytes = std::uint64_t{1} << 61;

std::uint64_t magnitude(std::int64_t stride) noexcept {
  const auto bits = static_cast<std::uint64_t>(stride);
  return stride < 0 ? std::uint64_t{0} - bits : bits;
}

std::string text_of(const array_layout& of) {
  const std::span shape{of.shape.data(), of.rank};
  return fmt::format("({}{})", fmt::join(shape, ", "), of.rank == 1 ? "," : "");
}

result<void> check_given(const isthmus_array_t& given, const char* name) {
  ISTHMUS_TRY(check_dtype(given.dtype));
  if (given.dimensions > k_most_array_dimensions) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "the {} has {} dimensions: {} at most", name,
                given.dimensions, k_most_array_dimensions);
  }
  if (given.dimensions != 0 && (given.shape == nullptr || given.strides == nullptr)) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "{}->{} is NULL, and it has {} dimensions: give one for each", name,
                given.shape == nullptr ? "shape" : "strides", given.dimensions);
  }
  for (std::size_t i = 0; i < given.dimensions; ++i) {
    if (given.shape[i] < 0) {
      return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                  "the {} has {} elements along dimension {}: 0 at least", name, given.shape[i], i);
    }
  }
  return {};
}

// Adds the dimension's span to one of the two sides; false: too far.
bool add_span(std::int64_t stride, std::int64_t count, std::uint64_t& below, std::uint64_t& above) {
  const auto gaps = static_cast<std::uint64_t>(count - 1);
  const auto distance = magnitude(stride);
  if (distance != 0 && gaps > k_most_bytes / distance) {
    return false;
  }
  (stride < 0 ? below : above) += gaps * distance;
  return below + above <= k_most_bytes;
}

result<void> measure(array_layout& made, const char* name) {
  const std::span shape{made.shape.data(), made.rank};
  if (std::ranges::find(shape, 0) != shape.end()) {
    return {};
  }
  std::uint64_t below = 0;
  std::uint64_t above = made.item();
  for (std::size_t i = 0; i < made.rank; ++i) {
    if (!add_span(made.strides[i], made.shape[i], below, above)) {
      return fail(ISTHMUS_ERROR_OUT_OF_RANGE,
                  "{} elements {} bytes apart in dimension {} of the {} are more than an address "
                  "can span",
                  made.shape[i], made.strides[i], i, name);
    }
  }
  made.before = below;
  made.nbytes = below + above;
  return {};
}

}  // namespace

result<array_layout> layout_of(const isthmus_array_t& given, const char* name) {
  ISTHMUS_TRY(check_given(given, name));
  array_layout made;
  made.of = given.dtype;
  made.rank = given.dimensions;
  std::copy_n(given.shape, made.rank, made.shape.begin());
  std::copy_n(given.strides, made.rank, made.strides.begin());
  ISTHMUS_TRY(measure(made, name));
  return made;
}

result<array_layout> broadcast(const array_layout& given, const array_layout& to) {
  auto made = given;
  made.rank = to.rank;
  made.shape = to.shape;
  made.strides = {};
  // What is too much must be 1, from the left.
  const auto more = given.rank > to.rank ? given.rank - to.rank : 0;
  bool fits =
      std::all_of(given.shape.begin(), given.shape.begin() + static_cast<std::ptrdiff_t>(more),
                  [](std::int64_t count) { return count == 1; });
  for (std::size_t i = more; i < given.rank && fits; ++i) {
    const auto into = i + to.rank - given.rank;
    fits = given.shape[i] == to.shape[into] || given.shape[i] == 1;
    made.strides[into] = given.shape[i] == 1 ? 0 : given.strides[i];
  }
  if (!fits) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "a source of shape {} cannot be broadcast to the destination's {}", text_of(given),
                text_of(to));
  }
  return made;
}

namespace {

struct dimension {
  std::uint64_t stride;
  std::uint64_t gaps;
};

// Those with more than one element, the widest strides first.
std::vector<dimension> dimensions_of(const array_layout& of) {
  std::vector<dimension> all;
  all.reserve(of.rank);
  for (std::size_t i = 0; i < of.rank; ++i) {
    if (of.shape[i] > 1) {
      all.push_back({magnitude(of.strides[i]), static_cast<std::uint64_t>(of.shape[i] - 1)});
    }
  }
  std::sort(all.begin(), all.end(),
            [](const dimension& one, const dimension& next) { return one.stride > next.stride; });
  return all;
}

// Each stride spans all that lies inside it.
bool is_nested(const std::vector<dimension>& all, std::size_t item) noexcept {
  std::uint64_t inside = item;
  for (std::size_t i = all.size(); i-- > 0;) {
    if (all[i].stride < inside) {
      return false;
    }
    inside += all[i].gaps * all[i].stride;
  }
  return true;
}

// Of two elements whose indices differ first along `first`, by 1 at least, and along those behind
// it by anything.
sum_answer share_bytes_from(const std::vector<dimension>& all, std::size_t first,
                            std::size_t item) {
  std::vector<bounded_term> terms{{1, 2 * (item - 1)}};
  std::uint64_t wanted = item - 1;
  terms.push_back({all[first].stride, all[first].gaps - 1});
  for (std::size_t i = first + 1; i < all.size(); ++i) {
    terms.push_back({all[i].stride, 2 * all[i].gaps});
    wanted += all[i].gaps * all[i].stride;
  }
  if (wanted < all[first].stride) {
    return sum_answer::no;
  }
  return can_sum_to(std::move(terms), wanted - all[first].stride);
}

}  // namespace

result<void> check_apart(const array_layout& destination) {
  if (destination.is_empty()) {
    return {};
  }
  const auto all = dimensions_of(destination);
  const auto item = destination.item();
  if (is_nested(all, item)) {
    return {};
  }
  for (std::size_t first = 0; first < all.size(); ++first) {
    const auto answer = share_bytes_from(all, first, item);
    if (answer != sum_answer::no) {
      return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                  "elements overlap in the destination, {} of shape {} with a stride of {} bytes: "
                  "copy to an array of which {} two elements share bytes",
                  facts_of(destination.of).name, text_of(destination), all[first].stride,
                  answer == sum_answer::yes ? "no" : "it is plain that no");
    }
  }
  return {};
}

bool may_share_bytes(const array_layout& one, std::uintptr_t at, const array_layout& other,
                     std::uintptr_t other_at) {
  if (one.is_empty() || other.is_empty() || at >= other_at + other.nbytes ||
      other_at >= at + one.nbytes) {
    return false;
  }
  // A byte of the one is its lowest address and strides; of the other its highest less strides.
  std::vector<bounded_term> terms{{1, one.item() - 1 + other.item() - 1}};
  for (const auto* each : {&one, &other}) {
    for (const auto& along : dimensions_of(*each)) {
      terms.push_back({along.stride, along.gaps});
    }
  }
  return can_sum_to(std::move(terms), other_at + other.nbytes - 1 - at) != sum_answer::no;
}

}  // namespace isthmus
