// expect: nodiscard|ignoring return
// An event that nobody holds is an operation that nobody waits for.
#include <isthmus/isthmus.hpp>

void forget(const isthmus::buffer& buffer, std::span<const std::byte> bytes) {
  isthmus::copy_async(buffer, bytes);
}
