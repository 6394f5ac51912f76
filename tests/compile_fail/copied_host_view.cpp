// expect: deleted
// SPDX-License-Identifier: Apache-2.0
// A host view is one export: it can be moved, not copied.
#include <isthmus/isthmus.hpp>

void twice(const isthmus::host_view<>& view) { isthmus::host_view<> copy = view; }
