// expect: no matching function|could not convert|no viable conversion|invalid initialization
// Bytes alone do not make objects that have constructors.
#include <isthmus/isthmus.hpp>

#include <string>

void send(const isthmus::buffer& to, std::span<const std::string> words) {
  isthmus::copy(to, words);
}
