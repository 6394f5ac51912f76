// expect: takes a function and the buffers and arrays
// SPDX-License-Identifier: Apache-2.0
// A function given to a queue operates on buffers: a raw pointer would not be kept alive.
#include <isthmus/isthmus.hpp>

void run(const isthmus::queue& queue, void* memory) {
  queue.submit([](std::span<std::byte>) {}, memory).wait();
}
