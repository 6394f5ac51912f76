// expect: takes one std::span for each
// SPDX-License-Identifier: Apache-2.0
// A function given to a queue takes one span for each buffer.
#include <isthmus/isthmus.hpp>

void run(const isthmus::queue& queue, const isthmus::buffer& buffer) {
  queue.submit([](std::span<std::byte>, std::span<std::byte>) {}, buffer).wait();
}
