// SPDX-License-Identifier: Apache-2.0
#pragma once
// Marks bytes as inaccessible, so that AddressSanitizer reports accesses. Does nothing in other
// builds.

#include <cstddef>

#include "core/sanitizers.hpp"

#if ISTHMUS_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif

namespace isthmus {

// The ranges of both functions consist of whole granules of 8 bytes.
inline void poison([[maybe_unused]] const void* begin,
                   [[maybe_unused]] std::size_t nbytes) noexcept {
#if ISTHMUS_ADDRESS_SANITIZER
  __asan_poison_memory_region(begin, nbytes);
#endif
}
inline void unpoison([[maybe_unused]] const void* begin,
                     [[maybe_unused]] std::size_t nbytes) noexcept {
#if ISTHMUS_ADDRESS_SANITIZER
  __asan_unpoison_memory_region(begin, nbytes);
#endif
}

}  // namespace isthmus
