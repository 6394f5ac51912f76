// expect: deleted
// Each view is ended once.
#include <isthmus/isthmus.hpp>

isthmus::unified_view<float> twice(const isthmus::unified_view<float>& of) { return of; }
