// expect: mark the function noexcept
// The function runs on a driver's thread, where an exception cannot be handled.
#include <isthmus/isthmus.hpp>

void watch(const isthmus::event& event) {
  event.then([] {});
}
