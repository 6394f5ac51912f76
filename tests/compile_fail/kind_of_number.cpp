// expect: no matching (function|constructor)|cannot convert|no known conversion
// A number is no kind: dpctl's 1 and a size that slipped are told apart.
#include <isthmus/isthmus.hpp>

isthmus::buffer make() { return isthmus::buffer(1024, 1); }
