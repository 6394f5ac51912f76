// SPDX-License-Identifier: Apache-2.0
#include "core/interned.hpp"

namespace isthmus::python {

InternedNames interned;

void intern_names() {
  interned.device = PyUnicode_InternFromString("device");
  interned.shared = PyUnicode_InternFromString("shared");
  interned.host = PyUnicode_InternFromString("host");
  interned.unknown = PyUnicode_InternFromString("unknown");
  interned.data = PyUnicode_InternFromString("data");
  interned.shape = PyUnicode_InternFromString("shape");
  interned.syclobj = PyUnicode_InternFromString("syclobj");
}

nb::handle kind_name(isthmus_kind_t kind) noexcept {
  switch (kind) {
    case ISTHMUS_KIND_DEVICE: return interned.device;
    case ISTHMUS_KIND_SHARED: return interned.shared;
    case ISTHMUS_KIND_HOST: return interned.host;
    default: return interned.unknown;
  }
}

}  // namespace isthmus::python
