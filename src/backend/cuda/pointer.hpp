// SPDX-License-Identifier: Apache-2.0
#pragma once
// Queries the driver about a pointer. Thread-safe.

#include "backend/cuda/api.hpp"
#include "backend/device.hpp"

namespace isthmus::cuda {

struct pointer_answer {
  usm_kind kind = ISTHMUS_KIND_UNKNOWN;  // also for plain host memory
  void* base = nullptr;
  std::size_t nbytes = 0;
  ordinal where = 0;
};

// Takes 0.08 us. Pre: a context is current.
[[nodiscard]] inline pointer_answer ask_pointer(const api& calls, const void* pointer) noexcept {
  number what[] = {cu::k_pointer_memory_type, cu::k_pointer_is_managed, cu::k_pointer_device,
                   cu::k_pointer_base, cu::k_pointer_bytes};
  number type = 0;
  number managed = 0;
  pointer_answer told;
  place base = 0;
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
