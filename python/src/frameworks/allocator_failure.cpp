// SPDX-License-Identifier: Apache-2.0
#include "frameworks/allocator_failure.hpp"

#include <isthmus/isthmus.h>

#include <string>

namespace isthmus::python {

void throw_last_failure(const char* name) {
  throw AllocatorFailure(std::string(name) + isthmus_error_message());
}

}  // namespace isthmus::python
