// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/strided.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "backend/cuda/pointer.hpp"
#include "backend/cuda/submit.hpp"
#include "core/sizes.hpp"

namespace isthmus::cuda {
namespace {

constexpr std::size_t k_widest_unit = 16;
// The unit of device memory accesses.
constexpr std::size_t k_sector = 32;
// Longer runs are left to the kernel that copies ranges or to the driver.
constexpr std::size_t k_longest_run = std::size_t{4} << 10;

std::size_t unit_of(const strided_copy& what) noexcept {
  auto all = address(what.destination) | address(what.source) | what.width | k_widest_unit;
  for (std::size_t i = 0; i < what.rank; ++i) {
    all |= what.dimensions[i].destination_stride | what.dimensions[i].source_stride;
  }
  return std::size_t{1} << std::countr_zero(all);
}

void append(strided_launch& made, const strided_dimension& outer) noexcept {
  made.dimensions.at(made.rank++) = {outer.destination_stride, outer.source_stride,
                                     static_cast<number>(outer.count)};
}

strided_launch in_units(const strided_copy& what) noexcept {
  const auto unit = unit_of(what);
  strided_launch made{place_of(what.destination), place_of(what.source),
                      static_cast<number>(what.bytes() / unit), 0, static_cast<number>(unit)};
  if (what.width != unit) {
    append(made, {what.width / unit, unit, unit});
  }
  for (std::size_t i = what.rank; i-- > 0;) {
    append(made, what.dimensions[i]);
  }
  return made;
}

// Splits off the fastest-varying part of a dimension.
strided_launch::dimension split(strided_launch::dimension& whole, number count) noexcept {
  auto low = whole;
  low.count = count;
  whole.count /= count;
  whole.destination_stride *= count;
  whole.source_stride *= count;
  return low;
}

// If neighbours in the destination are not neighbours in the source, each group of threads copies a
// square tile that consists of whole sectors on both sides. Otherwise each thread would read a
// sector for one unit.
void cut_tiles(strided_launch& made) noexcept {
  const auto begin = made.dimensions.begin();
  const auto along =
      std::min_element(begin, begin + made.rank, [](const auto& one, const auto& next) {
        return one.source_stride != 0 &&
               (next.source_stride == 0 || one.source_stride < next.source_stride);
      });
  const auto side = static_cast<number>(k_sector / made.unit_bytes);
  if (along == begin || begin->count % side != 0 || along->count % side != 0) {
    return;
  }
  const std::array tile{split(*begin, side), split(*along, side)};
  std::move_backward(begin, begin + made.rank, begin + made.rank + tile.size());
  std::copy(tile.begin(), tile.end(), begin);
  made.rank += tile.size();
}

bool is_pinned(const api& calls, const void* pointer) noexcept {
  return ask_pointer(calls, pointer).kind == ISTHMUS_KIND_HOST;
}

}  // namespace

bool device::copies_strided() const noexcept {
  const made_current here{calls_, known_primary()};
  return here.outcome() == cu::k_success && strided_kernel_.loaded(calls_) != nullptr;
}

std::optional<strided_launch> launch_of(device& where, const strided_copy& what) {
  const made_current here{where.calls(), where.known_primary()};
  if (what.width > k_longest_run || what.bytes() > std::numeric_limits<number>::max() / 2 ||
      here.outcome() != cu::k_success ||
      !where.kernels_reach(what.destination, what.extent(side::destination)) ||
      !where.kernels_reach(what.source, what.extent(side::source)) ||
      where.strided_kernel().loaded(where.calls()) == nullptr) {
    return std::nullopt;
  }
  const bool to_host = is_pinned(where.calls(), what.destination);
  const bool from_host = is_pinned(where.calls(), what.source);
  auto made = in_units(simplest(what, from_host && !to_host ? side::source : side::destination));
  if (!to_host && !from_host) {
    cut_tiles(made);
  }
  return made;
}

result<ref<event>> queue::put_launch(const strided_launch& what, wait_list after) {
  const auto most = device_.properties().compute_units * k_blocks_a_multiprocessor;
  const auto blocks = std::min((what.units + k_threads - 1) / k_threads, most);
  return submit("a strided copy", after, [this, what, blocks] {
    auto parameter = what;
    void* parameters[] = {&parameter};
    return calls().launch(device_.strided_kernel().loaded(calls()), blocks, 1, 1, k_threads, 1, 1,
                          0, stream(), parameters, nullptr);
  });
}

result<ref<event>> queue::do_copy_strided(const strided_copy& what, wait_list after) {
  const auto launch = launch_of(device_, what);
  return launch ? put_launch(*launch, after) : isthmus::queue::do_copy_strided(what, after);
}

}  // namespace isthmus::cuda
