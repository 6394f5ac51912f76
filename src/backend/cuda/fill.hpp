// SPDX-License-Identifier: Apache-2.0
#pragma once
// Fills of memory with a pattern, by the driver. Thread-safe.

#include "backend/cuda/api.hpp"
#include "core/bytes.hpp"

namespace isthmus::cuda {

// The memory is not pageable, and the context of the stream is current.
[[nodiscard]] CUresult enqueue_fill(const Api& calls, CUstream stream, void* destination,
                                    const FillPattern& pattern, std::size_t nbytes) noexcept;

}  // namespace isthmus::cuda
