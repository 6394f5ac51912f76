// SPDX-License-Identifier: Apache-2.0
#pragma once
// The functions `isthmus_X_info`, which report the properties of an object in a structure.

#include <cstring>

#include "input.hpp"

namespace fuzz {

// Calls `function(arguments..., info)` with a NULL `info`, with a `struct_size` that the input may
// make too small, and with the full one. The first two fail, and the second leaves the structure
// unchanged. Returns the status of the last call.
template <class Info, class... Parameters, class... Arguments>
isthmus_status_t read_info(input& source, Info& info,
                           isthmus_status_t (*function)(Parameters...) noexcept,
                           Arguments... arguments) {
  constexpr isthmus_status_t k_refused = ISTHMUS_ERROR_INVALID_ARGUMENT;
  require(function(arguments..., nullptr) == k_refused);
  Info small{};
  small.struct_size = source.byte() % (sizeof small.struct_size + 1);
  const Info before = small;
  require(function(arguments..., &small) == k_refused);
  require(std::memcmp(&small, &before, sizeof small) == 0);
  info = {};
  info.struct_size = sizeof info;
  const isthmus_status_t code = function(arguments..., &info);
  expect_documented(code);
  return code;
}

}  // namespace fuzz
