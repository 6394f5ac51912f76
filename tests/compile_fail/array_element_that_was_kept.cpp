// expect: operator=
// It borrows the array, which may be gone by then.
#include <isthmus/isthmus.hpp>

void set(const isthmus::array<float, 1>& a) {
  auto kept = a(0);
  kept = 1.0f;
}
