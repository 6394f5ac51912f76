// expect: elements are bool, integers|constraint
// Nor are records: an array's elements are single numbers.
#include <isthmus/isthmus.hpp>

struct point {
  float x, y;
};
auto make() { return isthmus::empty<point>({10}); }
