#pragma once
// The threads of a copy by way of the staging ring: how many, and where they run.
//
// As many as its bytes are worth, the caller may run on, the control group allows and there are
// lanes for; of these as many as earlier copies gained by (thread_choice.hpp), or as
// ISTHMUS_COPY_THREADS says.

#include "transfer/staging_ring.hpp"

namespace isthmus {

constexpr std::size_t k_bytes_worth_a_thread = std::size_t{512} << 10;

struct copy_crew {
  std::size_t threads = 1;
  bool is_measured = true;   // so that the next copy may have another number
  os::processor_set places;  // of the library's threads among them
};

// For a copy that the calling thread asks for. `earlier` null: not of those that are measured, so
// that as many take part as may. INVALID_ARGUMENT: ISTHMUS_COPY_THREADS is not a number of them.
[[nodiscard]] result<copy_crew> crew_for(const staging_ring& ring, std::size_t nbytes,
                                         thread_choice* earlier);

// What a text says as ISTHMUS_COPY_THREADS; 0: nothing. INVALID_ARGUMENT.
[[nodiscard]] result<std::size_t> threads_in(const char* text);

}  // namespace isthmus
