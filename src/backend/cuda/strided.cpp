// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/strided.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "backend/cuda/current.hpp"
#include "backend/cuda/device.hpp"
#include "backend/cuda/pointer.hpp"
#include "core/sizes.hpp"

namespace isthmus::cuda {
namespace {

constexpr std::size_t k_max_unit = 16;
// The unit of device memory accesses.
constexpr std::size_t k_sector_bytes = 32;
// Longer runs are left to the kernel that copies ranges or to the driver.
constexpr std::size_t k_max_run = std::size_t{4} << 10;
// A kernel copies rows up to this width faster than the driver. Times of the kernel and the driver
// for 4 MiB (H100): in rows of 64 bytes 117 and 137 us to the device, 15 and 25 us within it; in
// rows of 4 bytes 346 and 1,826 us to the device, 17 and 135 us within it. To the device, rows of
// 128 bytes took 109 and 107 us.
constexpr std::size_t k_max_kernel_width = 64;

std::size_t unit_of(const StridedCopy& copy) noexcept {
  auto all = address(copy.destination) | address(copy.source) | copy.width | k_max_unit;
  for (std::size_t i = 0; i < copy.rank; ++i) {
    all |= copy.dimensions[i].destination_stride | copy.dimensions[i].source_stride;
  }
  return std::size_t{1} << std::countr_zero(all);
}

void append(StridedLaunch& launch, const StridedDimension& outer) noexcept {
  launch.dimensions.at(launch.rank++) = {outer.destination_stride, outer.source_stride,
                                         static_cast<unsigned>(outer.count)};
}

StridedLaunch in_units(const StridedCopy& copy) noexcept {
  const auto unit = unit_of(copy);
  StridedLaunch launch{to_deviceptr(copy.destination), to_deviceptr(copy.source),
                       static_cast<unsigned>(copy.bytes() / unit), 0, static_cast<unsigned>(unit)};
  if (copy.width != unit) {
    append(launch, {copy.width / unit, unit, unit});
  }
  for (std::size_t i = copy.rank; i-- > 0;) {
    append(launch, copy.dimensions[i]);
  }
  return launch;
}

// Splits off the fastest-varying part of a dimension.
StridedLaunch::Dimension split(StridedLaunch::Dimension& dimension, unsigned count) noexcept {
  auto low = dimension;
  low.count = count;
  dimension.count /= count;
  dimension.destination_stride *= count;
  dimension.source_stride *= count;
  return low;
}

// If neighbours in the destination are not neighbours in the source, each group of threads copies a
// square tile that consists of whole sectors on both sides. Otherwise each thread would read a
// sector for one unit.
void split_tiles(StridedLaunch& launch) noexcept {
  const auto begin = launch.dimensions.begin();
  const auto source_inner =
      std::min_element(begin, begin + launch.rank, [](const auto& left, const auto& right) {
        return left.source_stride != 0 &&
               (right.source_stride == 0 || left.source_stride < right.source_stride);
      });
  const auto tile_side = static_cast<unsigned>(k_sector_bytes / launch.unit_bytes);
  if (source_inner == begin || begin->count % tile_side != 0 ||
      source_inner->count % tile_side != 0) {
    return;
  }
  const std::array tile{split(*begin, tile_side), split(*source_inner, tile_side)};
  std::move_backward(begin, begin + launch.rank, begin + launch.rank + tile.size());
  std::copy(tile.begin(), tile.end(), begin);
  launch.rank += tile.size();
}

bool is_pinned(const Api& calls, const void* pointer) noexcept {
  return query_pointer(calls, pointer).kind == ISTHMUS_KIND_HOST;
}

}  // namespace

std::optional<StridedLaunch> launch_of(Device& device, const StridedCopy& copy) {
  const ContextGuard guard{device.calls(), device.primary_or_null()};
  if (copy.width > k_max_run || copy.bytes() > std::numeric_limits<unsigned>::max() / 2 ||
      guard.outcome() != cu::k_success ||
      !device.kernels_can_access(copy.destination, copy.extent(Side::destination)) ||
      !device.kernels_can_access(copy.source, copy.extent(Side::source)) ||
      device.strided_kernel().get_function(device.calls()) == nullptr) {
    return std::nullopt;
  }
  const bool to_host = is_pinned(device.calls(), copy.destination);
  const bool from_host = is_pinned(device.calls(), copy.source);
  auto launch =
      in_units(simplified(copy, from_host && !to_host ? Side::source : Side::destination));
  if (!to_host && !from_host) {
    split_tiles(launch);
  }
  return launch;
}

std::optional<StridedLaunch> launch_of(Device& device, const Copy2dShape& shape) {
  if (shape.width > k_max_kernel_width) {
    return std::nullopt;
  }
  StridedCopy rows{shape.destination, shape.source, shape.width};
  rows.append({shape.height, shape.destination_pitch, shape.source_pitch});
  return launch_of(device, rows);
}

CUresult enqueue_launch(Device& device, CUstream stream, const StridedLaunch& launch) noexcept {
  const auto max_blocks = device.properties().compute_units * k_max_blocks_per_multiprocessor;
  const auto blocks =
      std::min((launch.units + k_threads_per_block - 1) / k_threads_per_block, max_blocks);
  auto parameter = launch;
  void* parameters[] = {&parameter};
  return device.calls().launch(device.strided_kernel().get_function(device.calls()), blocks, 1, 1,
                               k_threads_per_block, 1, 1, 0, stream, parameters, nullptr);
}

}  // namespace isthmus::cuda
