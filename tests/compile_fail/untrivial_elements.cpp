// expect: must be trivially copyable
// SPDX-License-Identifier: Apache-2.0
// Copying bytes does not create objects that have constructors.
#include <isthmus/isthmus.hpp>

#include <string>

void send(const isthmus::buffer& to, std::span<const std::string> words) {
  isthmus::copy(to, words);
}
