// expect: could not convert|no viable conversion|invalid initialization|no matching function
// A number does not become a buffer by itself.
#include <isthmus/isthmus.hpp>

void take(const isthmus::buffer&);
void give() { take(1024); }
