// expect: constraints not satisfied|no matching (member )?function
// What a queue's function works on are buffers: a pointer would not be kept alive.
#include <isthmus/isthmus.hpp>

void run(const isthmus::queue& queue, void* memory) {
  queue.submit([](std::span<std::byte>) {}, memory).wait();
}
