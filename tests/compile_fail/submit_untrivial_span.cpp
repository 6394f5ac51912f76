// expect: a buffer holds bytes
// SPDX-License-Identifier: Apache-2.0
// The bytes of a buffer are not objects that have constructors.
#include <isthmus/isthmus.hpp>

#include <string>

void run(const isthmus::queue& queue, const isthmus::buffer& buffer) {
  queue.submit([](std::span<std::string>) {}, buffer).wait();
}
