#pragma once
// Small numbers for threads: no two that live have the same, and that of a thread which has ended
// goes to a new one. Who keeps a place for each thread finds it by its number.

#include <cstdint>

#include "core/tls.hpp"

namespace isthmus {

// Numbers are below it.
inline constexpr std::uint32_t k_thread_numbers = 64;

namespace detail {
ISTHMUS_TLS_MODEL extern thread_local constinit std::uint32_t known_thread_number;
}

// The calling thread's. 0 if it never asked for one; k_thread_numbers if it cannot have one: all
// were taken when it asked, or it is ending, or the host had no memory to see to its end.
[[nodiscard]] inline std::uint32_t thread_number() noexcept { return detail::known_thread_number; }
// The same, once the thread has asked. What the last one with that number did is seen.
[[nodiscard]] std::uint32_t claim_thread_number() noexcept;

}  // namespace isthmus
