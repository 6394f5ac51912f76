// The public headers stand alone in C++20: the C contract, and where it is there the C++ face.
#include <isthmus/isthmus.h>

#if __has_include(<isthmus/isthmus.hpp>)
#include <isthmus/isthmus.hpp>
#endif

static_assert(sizeof(isthmus_status_t) == 4 && sizeof(isthmus_kind_t) == 4);
static_assert(noexcept(isthmus_version()));
