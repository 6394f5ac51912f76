// expect: could not convert|no viable conversion|invalid initialization|no matching function
// SPDX-License-Identifier: Apache-2.0
// A number does not convert to a buffer implicitly.
#include <isthmus/isthmus.hpp>

void take(const isthmus::buffer&);
void give() { take(1024); }
