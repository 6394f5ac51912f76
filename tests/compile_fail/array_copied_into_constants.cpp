// expect: destination's elements are const
// SPDX-License-Identifier: Apache-2.0
// A const vector cannot be a destination either.
#include <isthmus/isthmus.hpp>

void read_back(const std::vector<float>& values, const isthmus::array<float, 1>& a) {
  isthmus::copy(values, a);
}
