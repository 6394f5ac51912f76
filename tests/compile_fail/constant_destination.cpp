// expect: the destination's elements are const
// SPDX-License-Identifier: Apache-2.0
// Const memory cannot be a destination.
#include <isthmus/isthmus.hpp>

void overwrite(std::span<const std::byte> memory, const isthmus::buffer& from) {
  isthmus::copy(memory, from);
}
