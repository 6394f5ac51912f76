// expect: mark the function noexcept
// SPDX-License-Identifier: Apache-2.0
// The function runs on a driver's thread, where an exception cannot be handled.
#include <isthmus/isthmus.hpp>

void watch(const isthmus::event& event) {
  event.then([] {});
}
