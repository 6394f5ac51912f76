// SPDX-License-Identifier: Apache-2.0
#pragma once
// The exception of the allocators for frameworks. Needs no interpreter.

#include <stdexcept>

namespace isthmus::python {

// Frameworks convert it to an exception of their own.
class AllocatorFailure final : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws the library's message of this thread's last call after `name`, which may be empty.
[[noreturn]] void throw_last_failure(const char* name);

}  // namespace isthmus::python
