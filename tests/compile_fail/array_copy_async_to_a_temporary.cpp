// expect: outlives_call
// SPDX-License-Identifier: Apache-2.0
// The result could not be read, and the memory would be freed before the copy.
#include <isthmus/isthmus.hpp>

auto copied(const isthmus::array<float, 1>& a) {
  return isthmus::copy_async(std::vector<float>(10), a);
}
