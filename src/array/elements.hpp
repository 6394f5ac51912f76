// SPDX-License-Identifier: Apache-2.0
#pragma once
// Converts a row of elements on the host. Thread-safe.

#include "array/conversion.hpp"
#include "core/elements.hpp"

namespace isthmus {

// Source and destination must not overlap. `destination_item` is the size of an element of the
// destination.
void convert_elements(const ElementRow& row, const Conversion& conversion,
                      std::size_t destination_item) noexcept;

}  // namespace isthmus
