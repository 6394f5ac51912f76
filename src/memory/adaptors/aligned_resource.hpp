// SPDX-License-Identifier: Apache-2.0
#pragma once
// Raises the alignment of large requests, for vector loads, direct I/O and huge pages.

#include <algorithm>

#include "memory/adaptors/adaptor.hpp"

namespace isthmus {

class aligned_resource final : public adaptor {
 public:
  // Applies to requests of at least `from_bytes`. Pre: `alignment` is a power of two.
  aligned_resource(memory_resource& upstream, std::size_t alignment, std::size_t from_bytes)
      : adaptor{upstream}, alignment_{alignment}, from_bytes_{from_bytes} {}
  [[nodiscard]] result<void*> allocate(std::size_t nbytes, std::size_t alignment,
                                       queue& on) override {
    return adaptor::allocate(nbytes, raised(nbytes, alignment), on);
  }
  [[nodiscard]] void* allocate_warm(std::size_t nbytes, std::size_t alignment,
                                    queue* on) noexcept override {
    return take_warm(upstream(), nbytes, raised(nbytes, alignment), on);
  }
  [[nodiscard]] bool deallocate_warm(void* pointer, std::size_t nbytes,
                                     queue* on) noexcept override {
    return give_back_warm(upstream(), pointer, nbytes, on);
  }

 private:
  // An alignment that upstream would refuse is left unchanged, and is refused.
  [[nodiscard]] std::size_t raised(std::size_t nbytes, std::size_t alignment) const noexcept {
    const bool is_power = (alignment & (alignment - 1)) == 0;
    return nbytes >= from_bytes_ && is_power ? std::max(alignment, alignment_) : alignment;
  }

  const std::size_t alignment_;
  const std::size_t from_bytes_;
};

}  // namespace isthmus
