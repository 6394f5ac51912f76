// expect: more indices than the array has axes
// SPDX-License-Identifier: Apache-2.0
// A view cannot remove more axes than there are.
#include <isthmus/isthmus.hpp>

auto cut(const isthmus::array<float, 2>& a) { return a.view(1, isthmus::every, 2); }
