#pragma once
// Which sanitizers the build has: g++ says so by a macro, clang by a feature.

namespace isthmus {

#if defined(__has_feature)
#define ISTHMUS_HAS_FEATURE(name) __has_feature(name)
#else
#define ISTHMUS_HAS_FEATURE(name) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || ISTHMUS_HAS_FEATURE(address_sanitizer)
inline constexpr bool k_address_sanitizer = true;
#else
inline constexpr bool k_address_sanitizer = false;
#endif

#if defined(__SANITIZE_THREAD__) || ISTHMUS_HAS_FEATURE(thread_sanitizer)
inline constexpr bool k_thread_sanitizer = true;
#else
inline constexpr bool k_thread_sanitizer = false;
#endif

#undef ISTHMUS_HAS_FEATURE

}  // namespace isthmus
