// SPDX-License-Identifier: Apache-2.0
#pragma once
// The source of a pool's memory, if that is not the driver. `RecordedUpstream` implements it over a
// resource.

#include <cstddef>

#include "backend/context.hpp"
#include "core/ref.hpp"
#include "core/status.hpp"

namespace isthmus {

// Thread-safe. Implementations may call code of the program, which may call the library, even the
// same pool: call them with no lock held.
class PoolUpstream {
 public:
  // Memory usable on any queue. It is returned to upstream with the last reference to `holder`.
  struct Chunk {
    void* base = nullptr;
    Ref<RefCounted> holder;
  };

  PoolUpstream() = default;
  PoolUpstream(const PoolUpstream&) = delete;
  PoolUpstream& operator=(const PoolUpstream&) = delete;
  virtual ~PoolUpstream() = default;

  // Errors as upstream's; CALLBACK if it returns memory of a pool.
  [[nodiscard]] virtual Result<Chunk> allocate(const AllocationRequest& request) = 0;
  virtual std::size_t trim(std::size_t keep) noexcept = 0;
  [[nodiscard]] virtual Result<void> verify() = 0;
};

}  // namespace isthmus
