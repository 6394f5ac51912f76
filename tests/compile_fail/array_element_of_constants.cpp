// expect: lvalue required|not assignable|no match for|no viable
// SPDX-License-Identifier: Apache-2.0
// An element of an array of const elements is a value.
#include <isthmus/isthmus.hpp>

void overwrite(const isthmus::array<const float, 2>& a) { a(1, 2) = 3; }
