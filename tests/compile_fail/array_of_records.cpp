// expect: elements are bool, integers|constraint
// SPDX-License-Identifier: Apache-2.0
// An array's elements are single numbers, not records.
#include <isthmus/isthmus.hpp>

struct point {
  float x, y;
};
auto make() { return isthmus::empty<point>({10}); }
