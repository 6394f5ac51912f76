/* SPDX-License-Identifier: Apache-2.0 */
/* Only compiled, as C99: the layouts of the C headers are those in layout.h and
 * layout_experimental.h. */
#include <isthmus/experimental.h>

/* C99 has no static assertion: an array of -1 elements does not compile. */
#define JOIN2(a, b)      a##b
#define JOIN(a, b)       JOIN2(a, b)
#define HOLDS(condition) extern char JOIN(asserted_, __LINE__)[(condition) ? 1 : -1];
#define SIZE(type, size) HOLDS(sizeof(type) == (size))
#define FIELD(type, field, offset, size) \
  HOLDS(offsetof(type, field) == (offset) && sizeof(((type*)0)->field) == (size))
#define VALUE(name, number) HOLDS((name) == (number))

#include "layout.h"
#include "layout_experimental.h"
