// How a call of the C++ surface ends, as a status.
#pragma once

#include <isthmus/isthmus.hpp>

namespace support {

// The status of what a call throws; ok if it does not.
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
