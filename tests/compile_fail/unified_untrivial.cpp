// expect: T is trivially copyable and not const
// SPDX-License-Identifier: Apache-2.0
// Both copies are raw memory, which cannot hold objects that have constructors.
#include <isthmus/isthmus.hpp>

#include <string>

isthmus::unified_buffer<std::string> make() { return isthmus::unified_buffer<std::string>(3); }
