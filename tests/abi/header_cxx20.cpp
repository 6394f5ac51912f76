// SPDX-License-Identifier: Apache-2.0
// The public headers compile alone in C++20: the C header and, where it is installed, the C++ one.
#include <isthmus/isthmus.h>

#if __has_include(<isthmus/isthmus.hpp>)
#include <isthmus/isthmus.hpp>
#endif

static_assert(sizeof(isthmus_status_t) == 4 && sizeof(isthmus_kind_t) == 4);
static_assert(noexcept(isthmus_version()));
