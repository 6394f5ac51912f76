// expect: cannot convert|passing|no suitable|qualifiers
// It borrows the array, which may be gone by then.
#include <isthmus/isthmus.hpp>

float read(const isthmus::array<float, 1>& a) {
  const auto kept = a(0);
  return kept;
}
