// SPDX-License-Identifier: Apache-2.0
// Stops a compilation for an older standard at its first line, with the remedy. Without this, the
// headers of the library cause hundreds of errors. Included before all other headers. For use by
// Isthmus only.
#pragma once

// g++ and clang continue after #error, but not after an #include of a file that does not exist.
#if __cplusplus < 202002L
#error \
    "Isthmus's C++ headers need C++20: compile with -std=c++20, or in CMake link isthmus::isthmus"
#include <isthmus/detail/needs_cxx20>
#endif
