// expect: destination's elements are const
// What is only read is no destination.
#include <isthmus/isthmus.hpp>

void overwrite(const isthmus::array<const float, 2>& a) { isthmus::fill(a, 1.0f); }
