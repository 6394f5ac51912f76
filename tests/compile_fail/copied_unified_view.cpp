// expect: deleted
// SPDX-License-Identifier: Apache-2.0
// Each view ends exactly once.
#include <isthmus/isthmus.hpp>

isthmus::unified_view<float> twice(const isthmus::unified_view<float>& of) { return of; }
