#pragma once
// What an array made after a prototype takes from it: one of ours, NumPy's, or of any library that
// tells of its memory.

#include <optional>

#include "interfaces.hpp"
#include "typed_array.hpp"

namespace isthmus::python {

// Shape, type and place, as far as the caller does not name them.
struct model {
  nb::object shape;                    // not valid for an array of ours
  const typed_array* array = nullptr;  // then it is this one's
  const element_type* type = nullptr;
  nb::object queue{};  // not valid: the current one
  isthmus_kind_t kind = ISTHMUS_KIND_DEVICE;
  std::optional<array_layout> lies{};  // how another library's array lies, where that is told

  [[nodiscard]] const array_layout* layout() const noexcept {
    return array != nullptr ? array->layout.get() : lies ? &*lies : nullptr;
  }
};

// Of anything that NumPy makes an array of, too. Errors as NumPy's and the interfaces' readers'.
[[nodiscard]] model model_of(nb::handle prototype);

// TypeError, with the reason, for a type that no array here has.
void require_type(told_interface& told);

}  // namespace isthmus::python
