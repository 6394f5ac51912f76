// expect: constraints not satisfied|no matching function
// SPDX-License-Identifier: Apache-2.0
// Patterns have 1, 2, 4, 8 or 16 bytes.
#include <isthmus/isthmus.hpp>

struct pixel {
  unsigned char red, green, blue;
};
void paint(const isthmus::buffer& image) { isthmus::fill(image, pixel{1, 2, 3}); }
