// expect: outlives_call
// SPDX-License-Identifier: Apache-2.0
// Its memory would be freed before it is copied.
#include <isthmus/isthmus.hpp>

auto copied(const isthmus::array<float, 1>& a) {
  return isthmus::copy_async(a, std::vector<float>(10));
}
