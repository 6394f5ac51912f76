// SPDX-License-Identifier: Apache-2.0
#include "backend/sycl/errors.hpp"

namespace isthmus::sycl {

Error call_failed(const char* name) {
  return fail(ISTHMUS_ERROR_DRIVER,
              "{} failed; dpctl only logs SYCL's reason: run with DPCTL_VERBOSITY=error", name);
}

}  // namespace isthmus::sycl
