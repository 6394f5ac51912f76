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

std::size_t unit_of(const StridedCopy& copy) noexcept {
  auto all = address(copy.destination) | address(copy.source) | copy.width | k_widest_unit;
  for (std::size_t i = 0; i < copy.rank; ++i) {
    all |= copy.dimensions[i].destination_stride | copy.dimensions[i].source_stride;
  }
  return std::size_t{1} << std::countr_zero(all);
}

void append(StridedLaunch& made, const StridedDimension& outer) noexcept {
  made.dimensions.at(made.rank++) = {outer.destination_stride, outer.source_stride,
                                     static_cast<Number>(outer.count)};
}

StridedLaunch in_units(const StridedCopy& copy) noexcept {
  const auto unit = unit_of(copy);
  StridedLaunch made{place_of(copy.destination), place_of(copy.source),
                     static_cast<Number>(copy.bytes() / unit), 0, static_cast<Number>(unit)};
  if (copy.width != unit) {
    append(made, {copy.width / unit, unit, unit});
  }
  for (std::size_t i = copy.rank; i-- > 0;) {
    append(made, copy.dimensions[i]);
  }
  return made;
}

// Splits off the fastest-varying part of a dimension.
StridedLaunch::Dimension split(StridedLaunch::Dimension& whole, Number count) noexcept {
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
void cut_tiles(StridedLaunch& made) noexcept {
  const auto begin = made.dimensions.begin();
  const auto along =
      std::min_element(begin, begin + made.rank, [](const auto& one, const auto& next) {
        return one.source_stride != 0 &&
               (next.source_stride == 0 || one.source_stride < next.source_stride);
      });
  const auto side = static_cast<Number>(k_sector / made.unit_bytes);
  if (along == begin || begin->count % side != 0 || along->count % side != 0) {
    return;
  }
  const std::array tile{split(*begin, side), split(*along, side)};
  std::move_backward(begin, begin + made.rank, begin + made.rank + tile.size());
  std::copy(tile.begin(), tile.end(), begin);
  made.rank += tile.size();
}

bool is_pinned(const Api& calls, const void* pointer) noexcept {
  return ask_pointer(calls, pointer).kind == ISTHMUS_KIND_HOST;
}

}  // namespace

bool Device::copies_strided() const noexcept {
  const MadeCurrent here{calls_, known_primary()};
  return here.outcome() == cu::k_success && strided_kernel_.loaded(calls_) != nullptr;
}

std::optional<StridedLaunch> launch_of(Device& device, const StridedCopy& copy) {
  const MadeCurrent here{device.calls(), device.known_primary()};
  if (copy.width > k_longest_run || copy.bytes() > std::numeric_limits<Number>::max() / 2 ||
      here.outcome() != cu::k_success ||
      !device.kernels_reach(copy.destination, copy.extent(Side::destination)) ||
      !device.kernels_reach(copy.source, copy.extent(Side::source)) ||
      device.strided_kernel().loaded(device.calls()) == nullptr) {
    return std::nullopt;
  }
  const bool to_host = is_pinned(device.calls(), copy.destination);
  const bool from_host = is_pinned(device.calls(), copy.source);
  auto made = in_units(simplest(copy, from_host && !to_host ? Side::source : Side::destination));
  if (!to_host && !from_host) {
    cut_tiles(made);
  }
  return made;
}

Result<Ref<Event>> Queue::put_launch(const StridedLaunch& launch, WaitList after) {
  const auto most = device_.properties().compute_units * k_blocks_a_multiprocessor;
  const auto blocks = std::min((launch.units + k_threads - 1) / k_threads, most);
  return submit("a strided copy", after, [this, launch, blocks] {
    auto parameter = launch;
    void* parameters[] = {&parameter};
    return calls().launch(device_.strided_kernel().loaded(calls()), blocks, 1, 1, k_threads, 1, 1,
                          0, stream(), parameters, nullptr);
  });
}

Result<Ref<Event>> Queue::do_copy_strided(const StridedCopy& copy, WaitList after) {
  const auto launch = launch_of(device_, copy);
  return launch ? put_launch(*launch, after) : isthmus::Queue::do_copy_strided(copy, after);
}

}  // namespace isthmus::cuda
