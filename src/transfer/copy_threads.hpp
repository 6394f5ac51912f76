// SPDX-License-Identifier: Apache-2.0
#pragma once
// Chooses the number of copy threads of a copy through the staging ring, and their processors.
// Thread-safe.
//
// The number is limited by the size of the copy, the processors of the calling thread, the control
// group and the number of slot pairs. Within that limit it is the value of ISTHMUS_COPY_THREADS if
// set, otherwise the number that was fastest in earlier copies (thread_choice.hpp).

#include "transfer/staging_ring.hpp"

namespace isthmus {

constexpr std::size_t k_min_bytes_per_thread = std::size_t{512} << 10;

struct CopyThreads {
  std::size_t threads = 1;
  bool is_measured = true;      // whether the time of this copy influences later choices
  os::ProcessorSet processors;  // for those copy threads that are library threads
};

// Returns the copy threads for a copy that the calling thread executes. If `choice` is null there
// are no measurements, and the limit is used. INVALID_ARGUMENT if ISTHMUS_COPY_THREADS is not a
// valid number of threads.
[[nodiscard]] Result<CopyThreads> copy_threads_for(const StagingRing& ring, std::size_t nbytes,
                                                   ThreadChoice* choice);

// Parses a value of ISTHMUS_COPY_THREADS. Returns 0 for null or an empty string. INVALID_ARGUMENT
// for an invalid value.
[[nodiscard]] Result<std::size_t> parse_threads(const char* text);

}  // namespace isthmus
