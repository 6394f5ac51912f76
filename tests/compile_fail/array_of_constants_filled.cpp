// expect: destination's elements are const
// SPDX-License-Identifier: Apache-2.0
// A read-only array cannot be a destination.
#include <isthmus/isthmus.hpp>

void overwrite(const isthmus::array<const float, 2>& a) { isthmus::fill(a, 1.0f); }
