// expect: no matching (function|constructor)|cannot convert|no known conversion
// SPDX-License-Identifier: Apache-2.0
// A number is not a USM kind: neither dpctl's constant 1 nor a misplaced size is accepted.
#include <isthmus/isthmus.hpp>

isthmus::buffer make() { return isthmus::buffer(1024, 1); }
