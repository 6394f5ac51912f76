// SPDX-License-Identifier: Apache-2.0
#pragma once
// The thread-local storage model: ISTHMUS_TLS_MODEL marks each thread_local that a warm path reads.
// The option ISTHMUS_TLS selects it (cmake/IsthmusOptions.cmake).
//
// With initial-exec an access takes two loads: the offset from the thread pointer is fixed when the
// library is opened, which requires space in the C library's static TLS reserve. TLS descriptors do
// not require this space, but an access is a call of a few instructions that saves no registers.

#if defined(ISTHMUS_TLS_DESCRIPTORS)
#define ISTHMUS_TLS_MODEL
#else
#define ISTHMUS_TLS_MODEL [[gnu::tls_model("initial-exec")]]
#endif
