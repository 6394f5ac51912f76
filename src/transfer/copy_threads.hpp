// SPDX-License-Identifier: Apache-2.0
#pragma once
// Chooses the copy threads of a copy through the staging ring: how many, and on which processors.
//
// Their number is limited by the size of the copy, the processors of the calling thread, the
// control group and the number of slot pairs. Below that limit it is the number that earlier
// copies gained from (thread_choice.hpp), or ISTHMUS_COPY_THREADS. Thread-safe.

#include "transfer/staging_ring.hpp"

namespace isthmus {

constexpr std::size_t k_min_bytes_per_thread = std::size_t{512} << 10;

struct CopyThreads {
  std::size_t threads = 1;
  bool is_measured = true;      // whether the time of this copy is used to choose the next number
  os::ProcessorSet processors;  // processors of the library's threads among them
};

// For a copy that the calling thread makes. `choice` null: no measurements, so the limit applies.
// INVALID_ARGUMENT if ISTHMUS_COPY_THREADS is not a valid number of threads.
[[nodiscard]] Result<CopyThreads> copy_threads_for(const StagingRing& ring, std::size_t nbytes,
                                                   ThreadChoice* choice);

// Parses a value of ISTHMUS_COPY_THREADS. NULL or empty: 0. INVALID_ARGUMENT for an invalid one.
[[nodiscard]] Result<std::size_t> parse_threads(const char* text);

}  // namespace isthmus
