#pragma once
// Raises the alignment of large requests: what vector loads, direct input and huge pages want.

#include <algorithm>

#include "memory/adaptors/adaptor.hpp"

namespace isthmus {

class aligned_resource final : public adaptor {
 public:
  // Pre: `alignment` is a power of two.
  aligned_resource(memory_resource& upstream, std::size_t alignment, std::size_t from_bytes)
      : adaptor{upstream}, alignment_{alignment}, from_bytes_{from_bytes} {}
  // An alignment that upstream would refuse stays as it is, and is refused.
  [[nodiscard]] result<void*> allocate(std::size_t nbytes, std::size_t alignment,
                                       queue& on) override {
    const bool raised = nbytes >= from_bytes_ && (alignment & (alignment - 1)) == 0;
    return adaptor::allocate(nbytes, raised ? std::max(alignment, alignment_) : alignment, on);
  }

 private:
  const std::size_t alignment_;
  const std::size_t from_bytes_;
};

}  // namespace isthmus
