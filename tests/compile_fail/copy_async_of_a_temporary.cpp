// expect: a temporary container may end before the copy
// SPDX-License-Identifier: Apache-2.0
// A temporary vector ends before an asynchronous copy has read it.
#include <isthmus/isthmus.hpp>

void send(const isthmus::buffer& to) { isthmus::copy_async(to, std::vector<float>(10)).wait(); }
