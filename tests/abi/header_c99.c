/* SPDX-License-Identifier: Apache-2.0 */
/* The public C headers compile alone in strict C99. */
#include <isthmus/experimental.h>

#include <isthmus/experimental.h> /* can be included twice */

typedef char isthmus_status_has_32_bits[sizeof(isthmus_status_t) == 4 ? 1 : -1];
typedef char isthmus_kind_has_32_bits[sizeof(isthmus_kind_t) == 4 ? 1 : -1];

const char* (*isthmus_header_c99_uses)(void) = isthmus_version;
