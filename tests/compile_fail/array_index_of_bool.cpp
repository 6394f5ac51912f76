// expect: no match|constraints
// What is true or false is no place.
#include <isthmus/isthmus.hpp>

auto cut(const isthmus::array<float, 2>& a) { return a.view(true); }
