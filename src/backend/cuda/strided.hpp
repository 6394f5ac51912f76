// SPDX-License-Identifier: Apache-2.0
#pragma once
// Copies of elements at constant strides by one kernel, between memory that it can access: device,
// managed and pinned memory. Transposing 4 Mi elements of 4 bytes took 52 us within the device and
// 436 us from pinned memory. As a list of ranges it took 118 ms and 120 ms (H100,
// bench/micro/copy_nd.py).

#include <array>
#include <optional>

#include "backend/cuda/api.hpp"
#include "core/bytes.hpp"
#include "core/strided.hpp"

namespace isthmus::cuda {

class Device;

// The layout that the kernel reads.
struct StridedLaunch {
  struct Dimension {
    std::uint64_t destination_stride = 0;
    std::uint64_t source_stride = 0;
    unsigned count = 1;
    unsigned unused = 0;
  };
  // A tile adds two dimensions, a run of several units adds one.
  static constexpr std::size_t k_max_dimensions = StridedCopy::k_max_dimensions + 4;

  CUdeviceptr destination = 0;
  CUdeviceptr source = 0;
  unsigned units = 0;
  unsigned rank = 0;
  unsigned unit_bytes = 0;
  unsigned unused = 0;
  std::array<Dimension, k_max_dimensions> dimensions{};  // the innermost first
};

// Returns the launch for a copy, in the largest units to which all addresses and strides are
// aligned. Consecutive threads copy neighbours in host memory or, if neither side is host memory,
// in the destination. Returns std::nullopt if the kernel cannot access both sides, the driver does
// not accept the kernel, the runs are long, or there are too many units.
[[nodiscard]] std::optional<StridedLaunch> launch_of(Device& device, const StridedCopy& copy);
// The same for rows. Also returns std::nullopt if the driver copies rows of this width faster.
[[nodiscard]] std::optional<StridedLaunch> launch_of(Device& device, const Copy2dShape& shape);

// Launches the kernel on a stream of `device`. The device's context is current.
[[nodiscard]] CUresult enqueue_launch(Device& device, CUstream stream,
                                      const StridedLaunch& launch) noexcept;

}  // namespace isthmus::cuda
