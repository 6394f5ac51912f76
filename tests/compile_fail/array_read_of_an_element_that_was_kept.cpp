// expect: cannot convert|passing|no suitable|qualifiers|expects an rvalue
// SPDX-License-Identifier: Apache-2.0
// The element borrows the array, which may have been destroyed by then.
#include <isthmus/isthmus.hpp>

float read(const isthmus::array<float, 1>& a) {
  const auto kept = a(0);
  return kept;
}
