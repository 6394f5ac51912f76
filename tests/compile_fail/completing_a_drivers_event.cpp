// expect: no member named .?complete
// Only an event of the host's is completed by the host.
#include <isthmus/isthmus.hpp>

void end(const isthmus::event& event) { event.complete(); }
