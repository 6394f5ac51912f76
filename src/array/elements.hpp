#pragma once
// A row of elements, each converted by the host.

#include "array/conversion.hpp"
#include "core/elements.hpp"

namespace isthmus {

// Pre: no byte that is written is read. `to_bytes` are those of an element that is made.
void convert_elements(const element_row& row, const conversion& how, std::size_t to_bytes) noexcept;

}  // namespace isthmus
