// expect: T is trivially copyable and not const
// Both copies are raw memory, which objects that have constructors are not.
#include <isthmus/isthmus.hpp>

#include <string>

isthmus::unified_buffer<std::string> make() { return isthmus::unified_buffer<std::string>(3); }
