// expect: trivially copyable
// SPDX-License-Identifier: Apache-2.0
// A host view is over bytes, which do not make objects that have constructors.
#include <isthmus/isthmus.hpp>

#include <string>

auto words(const isthmus::buffer& buffer) { return buffer.host<std::string>(); }
