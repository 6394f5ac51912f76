// expect: T is trivially copyable and not const
// Either side writes it: what is only read is a host_read.
#include <isthmus/isthmus.hpp>

isthmus::unified_buffer<const float> make() { return isthmus::unified_buffer<const float>(3); }
