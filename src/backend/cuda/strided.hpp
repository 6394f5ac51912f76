// SPDX-License-Identifier: Apache-2.0
#pragma once
// Copies of elements at regular distances by one kernel, between memory that it can access: device,
// managed and pinned memory. Transposing 4 Mi elements of 4 bytes took 52 us inside the device and
// 436 from pinned memory; as a list of ranges it took 118 and 120 ms (H100,
// bench/micro/copy_nd.py).

#include <array>
#include <optional>

#include "backend/cuda/api.hpp"
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
  // Two more if a tile is split off, one if a run has several units.
  static constexpr std::size_t k_max_dimensions = StridedCopy::k_max_dimensions + 4;

  CUdeviceptr destination = 0;
  CUdeviceptr source = 0;
  unsigned units = 0;
  unsigned rank = 0;
  unsigned unit_bytes = 0;
  unsigned unused = 0;
  std::array<Dimension, k_max_dimensions> dimensions{};  // the innermost first
};

// The launch for a copy, in the largest units that all addresses and strides are aligned to.
// Consecutive threads copy neighbours on the host's side or, if neither side is the host's, in the
// destination. Empty if the kernel cannot access both sides, the driver does not accept the kernel,
// the runs are long, or there are too many units.
[[nodiscard]] std::optional<StridedLaunch> launch_of(Device& device, const StridedCopy& copy);

}  // namespace isthmus::cuda
