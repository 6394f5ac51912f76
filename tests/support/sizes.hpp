// SPDX-License-Identifier: Apache-2.0
// Units of bytes, and the factor by which tests reduce their work under a slow sanitizer.
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
