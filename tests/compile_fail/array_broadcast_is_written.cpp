// expect: elements are const
// SPDX-License-Identifier: Apache-2.0
// One element may have several indices.
#include <isthmus/isthmus.hpp>

void write(const isthmus::array<float, 1>& a) { isthmus::fill(a.broadcast_to({3, 4}), 1.0f); }
