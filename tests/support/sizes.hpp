// Bytes as tests count them.
#pragma once

#include <cstddef>

namespace support {

inline constexpr std::size_t k_kib = 1024;
inline constexpr std::size_t k_mib = k_kib * k_kib;

}  // namespace support
