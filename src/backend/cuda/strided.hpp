#pragma once
// Copies of elements at regular distances by one kernel, between what it reaches: memory of the
// device, managed and pinned memory. 4 Mi elements of 4 bytes, transposed, took 52 us inside the
// device and 436 from pinned memory, listed as ranges 118 and 120 ms (H100,
// bench/micro/copy_nd.py).

#include <array>
#include <optional>

#include "backend/cuda/api.hpp"
#include "core/strided.hpp"

namespace isthmus::cuda {

class device;

// As the kernel reads it.
struct strided_launch {
  struct dimension {
    std::uint64_t destination_stride = 0;
    std::uint64_t source_stride = 0;
    number count = 1;
    number unused = 0;
  };
  // Two more where a tile is cut, one where a run is of several units.
  static constexpr std::size_t k_most_dimensions = strided_copy::k_most_dimensions + 4;

  place destination = 0;
  place source = 0;
  number units = 0;
  number rank = 0;
  number unit_bytes = 0;
  number unused = 0;
  std::array<dimension, k_most_dimensions> dimensions{};  // the innermost first
};

// In units as large as all of it is aligned to, neighbours on the host's side one after the other,
// or where there is none those of the destination. Nothing where the kernel does not reach both
// sides, the driver does not take it, or there are too many units.
[[nodiscard]] std::optional<strided_launch> launch_of(device& where, const strided_copy& what);

}  // namespace isthmus::cuda
