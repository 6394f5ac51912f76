// expect: a temporary container may end before the copy
// SPDX-License-Identifier: Apache-2.0
// A copy into a temporary vector would be lost.
#include <isthmus/isthmus.hpp>

void receive(const isthmus::buffer& from) { isthmus::copy(std::vector<float>(10), from); }
