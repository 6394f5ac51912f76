// SPDX-License-Identifier: Apache-2.0
// The result of a C++ call as a status.
#pragma once

#include <isthmus/isthmus.hpp>

namespace support {

// The status of the exception that `call` throws, or ok if it throws none.
template <class Call>
isthmus::status status_of(Call&& call) {
  try {
    call();
    return isthmus::status::ok;
  } catch (const isthmus::error& problem) {
    return problem.status();
  }
}

}  // namespace support
