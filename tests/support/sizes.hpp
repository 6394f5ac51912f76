// Bytes as tests count them, and what they divide the number of many by where each takes longer.
#pragma once

#include <cstddef>

namespace support {

inline constexpr std::size_t k_kib = 1024;
inline constexpr std::size_t k_mib = k_kib * k_kib;

#if defined(__SANITIZE_THREAD__)
inline constexpr std::size_t k_slower = 5;
#else
inline constexpr std::size_t k_slower = 1;
#endif

}  // namespace support
