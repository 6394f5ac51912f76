// expect: operator=
// SPDX-License-Identifier: Apache-2.0
// The element borrows the array, which may have been destroyed by then.
#include <isthmus/isthmus.hpp>

void set(const isthmus::array<float, 1>& a) {
  auto kept = a(0);
  kept = 1.0f;
}
