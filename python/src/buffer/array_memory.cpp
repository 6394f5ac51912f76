// SPDX-License-Identifier: Apache-2.0
#include "buffer/array_memory.hpp"

#include <utility>

namespace isthmus::python {

ArrayMemory::~ArrayMemory() {
  if (raw_) {
    drop_memory(raw_, *nb::inst_ptr<Queue>(queue_), nbytes_, false);
  }
}

void ArrayMemory::make_object() const {
  nb::object object = nb::inst_alloc(types.buffer);  // may collect garbage, and so run any code
  if (!object.is_valid()) {
    raise_set();
  }
  if (object_.is_valid()) {
    return;  // that code created the object, or freed the array
  }
  new (nb::inst_ptr<Buffer>(object))
      Buffer{std::move(raw_), std::move(queue_), nb::object{}, kind_, nbytes_, false};
  nb::inst_mark_ready(object);
  object_ = std::move(object);
}

}  // namespace isthmus::python
