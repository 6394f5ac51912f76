// expect: elements are bool, integers|constraint
// Memory holds numbers: objects with constructors are no elements.
#include <isthmus/isthmus.hpp>

#include <string>

void make(const isthmus::buffer& memory) { isthmus::array<std::string, 1> words(memory, {3}); }
