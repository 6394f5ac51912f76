// expect: no member named .?complete
// The host can complete only host events.
#include <isthmus/isthmus.hpp>

void end(const isthmus::event& event) { event.complete(); }
