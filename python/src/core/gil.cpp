// SPDX-License-Identifier: Apache-2.0
#include "core/gil.hpp"

namespace isthmus::python {

thread_local constinit bool lock_is_released = false;

// Closed before the interpreter ends, so that no thread takes the lock afterwards.
Gate callbacks_gate;

}  // namespace isthmus::python
