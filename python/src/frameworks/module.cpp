// SPDX-License-Identifier: Apache-2.0
// The native module isthmus._frameworks: what isthmus.torch, .cupy and .numba use.

#include "frameworks/bindings.hpp"

NB_MODULE(_frameworks, module) {
  using namespace isthmus::python;
  module.doc() = "The native part of isthmus.torch, isthmus.cupy and isthmus.numba.";
  bind_torch(module);
  bind_bare_block(module);
}
