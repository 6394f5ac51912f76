// SPDX-License-Identifier: Apache-2.0
#pragma once
// Detects which sanitizers the build uses: g++ defines a macro for each, clang reports a feature.
// ISTHMUS_ADDRESS_SANITIZER is a macro because it guards an include that other builds lack.

namespace isthmus {

#if defined(__has_feature)
#define ISTHMUS_HAS_FEATURE(name) __has_feature(name)
#else
#define ISTHMUS_HAS_FEATURE(name) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || ISTHMUS_HAS_FEATURE(address_sanitizer)
#define ISTHMUS_ADDRESS_SANITIZER 1
#else
#define ISTHMUS_ADDRESS_SANITIZER 0
#endif
inline constexpr bool k_address_sanitizer = ISTHMUS_ADDRESS_SANITIZER != 0;

#if defined(__SANITIZE_THREAD__) || ISTHMUS_HAS_FEATURE(thread_sanitizer)
inline constexpr bool k_thread_sanitizer = true;
#else
inline constexpr bool k_thread_sanitizer = false;
#endif

#undef ISTHMUS_HAS_FEATURE

}  // namespace isthmus
