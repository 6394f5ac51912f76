// expect: the destination's elements are const
// SPDX-License-Identifier: Apache-2.0
// Ranges are copied from constant memory, never into it.
#include <isthmus/isthmus.hpp>

void fill_in(const isthmus::buffer& from, std::span<const int> constant,
             std::span<const isthmus::copy_range> ranges) {
  isthmus::copy_ranges(constant, from, ranges);
}
