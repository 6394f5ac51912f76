// expect: outlives_call
// Nobody could look at it, and its memory would be gone.
#include <isthmus/isthmus.hpp>

auto copied(const isthmus::array<float, 1>& a) {
  return isthmus::copy_async(std::vector<float>(10), a);
}
