// expect: elements are const
// One element may have several indices.
#include <isthmus/isthmus.hpp>

void write(const isthmus::array<float, 1>& a) { isthmus::fill(a.broadcast_to({3, 4}), 1.0f); }
