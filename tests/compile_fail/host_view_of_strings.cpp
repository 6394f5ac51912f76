// expect: trivially copyable
// Nor does a view of the host's.
#include <isthmus/isthmus.hpp>

#include <string>

auto words(const isthmus::buffer& buffer) { return buffer.host<std::string>(); }
