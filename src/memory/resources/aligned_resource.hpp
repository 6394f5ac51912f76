// SPDX-License-Identifier: Apache-2.0
#pragma once
// Raises the alignment of large requests, for vector loads, direct I/O and huge pages.

#include <algorithm>

#include "core/expects.hpp"
#include "core/sizes.hpp"
#include "memory/resources/adaptor.hpp"

namespace isthmus {

class AlignedResource final : public Adaptor {
 public:
  // Applies to requests of at least `min_bytes`.
  AlignedResource(MemoryResource& upstream, std::size_t alignment, std::size_t min_bytes)
      : Adaptor{upstream}, alignment_{alignment}, min_bytes_{min_bytes} {
    ISTHMUS_EXPECTS(is_power_of_two(alignment), alignment);
  }
  [[nodiscard]] Result<void*> allocate(std::size_t nbytes, std::size_t alignment,
                                       Queue& queue) override {
    return Adaptor::allocate(nbytes, raised(nbytes, alignment), queue);
  }
  [[nodiscard]] void* allocate_fast(std::size_t nbytes, std::size_t alignment,
                                    Queue* queue) noexcept override {
    return allocate_fast_from(upstream(), nbytes, raised(nbytes, alignment), queue);
  }
  [[nodiscard]] bool deallocate_fast(void* pointer, std::size_t nbytes,
                                     Queue* queue) noexcept override {
    return deallocate_fast_to(upstream(), pointer, nbytes, queue);
  }

 private:
  // An alignment that upstream would refuse is passed unchanged, so that upstream refuses it.
  [[nodiscard]] std::size_t raised(std::size_t nbytes, std::size_t alignment) const noexcept {
    const bool is_power = (alignment & (alignment - 1)) == 0;
    return nbytes >= min_bytes_ && is_power ? std::max(alignment, alignment_) : alignment;
  }

  const std::size_t alignment_;
  const std::size_t min_bytes_;
};

}  // namespace isthmus
