#pragma once
// How a large copy is cut for Intel's CPU runtime, on whatever interface.

#include <array>
#include <cstddef>
#include <numeric>

#include "core/sizes.hpp"

namespace isthmus {

// The parts of a copy, in order: what is before an aligned destination (the runtime is up to 4
// times slower with large copies into memory off such a boundary), whole pages, the rest.
class copy_parts {
 public:
  copy_parts(const void* destination, std::size_t nbytes) noexcept {
    const std::size_t past = address(destination) % k_cache_line;
    const std::size_t head = past == 0 || nbytes < k_align_from ? 0 : k_cache_line - past;
    const std::size_t tail = nbytes < k_whole_from ? 0 : (nbytes - head) % k_whole;
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
  // From here on a destination that is not aligned costs the driver more than a second command
  // does, 2 to 10 us.
  static constexpr std::size_t k_align_from = std::size_t{8} << 20;
  // The runtime shares a copy out among its threads by a divisor of its size. 64 MiB less 48 bytes
  // are 16 times a prime and take 206 ms where 64 MiB less 4 KiB take 21: whole pages go apart from
  // the rest.
  static constexpr std::size_t k_whole = 4096;
  static constexpr std::size_t k_whole_from = std::size_t{1} << 20;

  std::array<std::size_t, 3> sizes_{};
  std::size_t count_ = 0;
};

}  // namespace isthmus
