// expect: mark the function noexcept
// What runs on a thread of a driver has nowhere to throw to.
#include <isthmus/isthmus.hpp>

void watch(const isthmus::event& event) {
  event.then([] {});
}
