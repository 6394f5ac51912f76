// expect: nodiscard|ignoring return
// SPDX-License-Identifier: Apache-2.0
// If the event is discarded, the operation cannot be waited for.
#include <isthmus/isthmus.hpp>

void forget(const isthmus::buffer& buffer, std::span<const std::byte> bytes) {
  isthmus::copy_async(buffer, bytes);
}
