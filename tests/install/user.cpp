// SPDX-License-Identifier: Apache-2.0
// A C++20 user program: the umbrella header compiles as installed, and the library can be called.
#include <isthmus/isthmus.hpp>

#include <cstdio>

int main() {
  std::printf("isthmus %s\n", isthmus_version());
  return isthmus_abi_version() >= ISTHMUS_ABI_VERSION ? 0 : 1;
}
