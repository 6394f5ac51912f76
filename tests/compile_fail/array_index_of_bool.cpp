// expect: no match|constraints
// SPDX-License-Identifier: Apache-2.0
// A truth value is not an index.
#include <isthmus/isthmus.hpp>

auto cut(const isthmus::array<float, 2>& a) { return a.view(true); }
