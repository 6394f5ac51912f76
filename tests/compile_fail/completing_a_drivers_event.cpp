// expect: no member named .?complete
// SPDX-License-Identifier: Apache-2.0
// The host can complete only host events.
#include <isthmus/isthmus.hpp>

void end(const isthmus::event& event) { event.complete(); }
