// expect: elements are bool, integers|constraint
// SPDX-License-Identifier: Apache-2.0
// An array's elements are numbers, not objects with constructors.
#include <isthmus/isthmus.hpp>

#include <string>

void make(const isthmus::buffer& memory) { isthmus::array<std::string, 1> words(memory, {3}); }
