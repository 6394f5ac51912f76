// expect: at most one ellipsis
// SPDX-License-Identifier: Apache-2.0
// It would be ambiguous how many axes each of the two stands for.
#include <isthmus/isthmus.hpp>

auto cut(const isthmus::array<float, 4>& a) {
  return a.view(isthmus::ellipsis, 1, isthmus::ellipsis);
}
