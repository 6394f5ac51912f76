// expect: one index for each axis
// SPDX-License-Identifier: Apache-2.0
// An element has as many indices as the array has axes.
#include <isthmus/isthmus.hpp>

float read(const isthmus::array<float, 2>& a) { return a(3); }
