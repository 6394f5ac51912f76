// SPDX-License-Identifier: Apache-2.0
#pragma once
// Divides a large copy into commands that Intel's CPU runtime executes efficiently, for the OpenCL
// and SYCL backends.

#include <array>
#include <cstddef>
#include <numeric>

#include "core/sizes.hpp"

namespace isthmus {

// The chunks of a copy, in order: the bytes before the first aligned byte of the destination, whole
// pages, and the remaining bytes. The runtime is up to 4 times slower with large copies to an
// unaligned destination.
class CopyDivision {
 public:
  CopyDivision(const void* destination, std::size_t nbytes) noexcept {
    const std::size_t misalignment = address(destination) % k_cache_line;
    const std::size_t head =
        misalignment == 0 || nbytes < k_min_bytes_to_align ? 0 : k_cache_line - misalignment;
    const std::size_t tail = nbytes < k_min_bytes_to_split ? 0 : (nbytes - head) % k_page_bytes;
    for (const auto size : {head, nbytes - head - tail, tail}) {
      if (size != 0) {
        sizes_.at(count_++) = size;
      }
    }
  }
  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  [[nodiscard]] std::size_t size(std::size_t index) const noexcept { return sizes_.at(index); }
  [[nodiscard]] std::size_t begin(std::size_t index) const noexcept {
    return std::accumulate(sizes_.begin(), sizes_.begin() + index, std::size_t{0});
  }

 private:
  static constexpr std::size_t k_cache_line = 64;
  // From this size on, an unaligned destination costs more time than an additional command (2 to 10
  // us).
  static constexpr std::size_t k_min_bytes_to_align = std::size_t{8} << 20;
  // The runtime divides a copy among its threads by a divisor of the copy's size. 64 MiB less 48
  // bytes, which is 16 times a prime, takes 206 ms; 64 MiB less 4 KiB takes 21 ms. Whole pages are
  // therefore copied separately from the rest.
  static constexpr std::size_t k_page_bytes = 4096;
  static constexpr std::size_t k_min_bytes_to_split = std::size_t{1} << 20;

  std::array<std::size_t, 3> sizes_{};
  std::size_t count_ = 0;
};

}  // namespace isthmus
