#pragma once
// How threads find what is theirs: ISTHMUS_TLS_MODEL stands at each thread_local that a warm path
// reads. The option ISTHMUS_TLS chooses (cmake/IsthmusOptions.cmake).
//
// initial-exec: two loads, at a distance from the thread's pointer that is fixed when the library
// is opened; then there must be room in the C library's static reserve. Descriptors need none: a
// call of a few instructions that saves no registers.

#if defined(ISTHMUS_TLS_DESCRIPTORS)
#define ISTHMUS_TLS_MODEL
#else
#define ISTHMUS_TLS_MODEL [[gnu::tls_model("initial-exec")]]
#endif
