// SPDX-License-Identifier: Apache-2.0
#include "array/prototype.hpp"

#include <cstring>

#include "array/sides.hpp"
#include "core/arguments.hpp"
#include "core/cuda_streams.hpp"
#include "core/current.hpp"

namespace isthmus::python {
namespace {

// NumPy has one stride for each extent; `strides` of other libraries may be anything.
std::optional<ArrayLayout> find_layout(nb::handle like, const ElementType& type) {
  const nb::object strides = nb::getattr(like, "strides", nb::none());
  if (PyTuple_Check(strides.ptr()) == 0) {
    return {};
  }
  ArrayLayout layout{{to_shape(nb::object(like.attr("shape")))}, type.item, &type};
  if (nb::len(strides) != layout.shape.size()) {
    return {};
  }
  for (nb::handle each : nb::borrow<nb::tuple>(strides)) {
    layout.strides.push_back(to_int64(each, "stride"));
  }
  return layout;
}

Model model_of_numpy(nb::handle argument) {
  const bool has_attributes = nb::hasattr(argument, "shape") && nb::hasattr(argument, "dtype");
  const nb::object like = has_attributes ? nb::borrow(argument) : numpy_array_of(argument);
  const auto& type = to_element_type(nb::object(like.attr("dtype")));
  Model model{like.attr("shape"), nullptr, &type};
  model.foreign_layout = find_layout(like, type);
  return model;
}

// The queue of a new array. A queue on a CUDA stream would keep the prototype, which owns the
// stream, alive. New memory has no earlier work to be ordered after.
nb::object queue_for_prototype(const nb::object& queue_object) {
  const auto& queue = *queue_of(queue_object);
  return cuda_number_of(queue) < 0 ? queue_object : to_queue(nb::handle{}, queue.device_object);
}

Model model_of_interface(ArrayInterface interface) {
  require_type(interface);
  Model model{{}, nullptr, interface.layout.type, queue_for_prototype(interface.queue)};
  const auto kind = interface.memory.pointer == nullptr
                        ? ISTHMUS_KIND_UNKNOWN
                        : query_kind(*queue_of(interface.queue), interface.memory.pointer);
  model.kind = kind != ISTHMUS_KIND_UNKNOWN ? kind : model.kind;
  model.foreign_layout = std::move(interface.layout);
  return model;
}

// NumPy arrays are the most common prototypes, and have no device interface.
bool is_numpy_array(nb::handle prototype) noexcept {
  return std::strcmp(Py_TYPE(prototype.ptr())->tp_name, "numpy.ndarray") == 0;
}

}  // namespace

Model model_of(nb::handle prototype) {
  if (const auto* array = typed_array_of(prototype)) {
    const auto& memory = buffer_in(*array);
    return {{}, array, array->layout->type, memory.queue_object, memory.kind};
  }
  if (const auto* bytes = buffer_of(prototype)) {
    return {nb::int_(bytes->nbytes), nullptr, &byte_type(), bytes->queue_object, bytes->kind};
  }
  if (PyType_Check(prototype.ptr()) == 0 && !is_numpy_array(prototype)) {
    if (auto interface = read_interface(prototype, Access::read)) {
      return model_of_interface(*std::move(interface));
    }
  }
  return model_of_numpy(prototype);
}

void require_type(ArrayInterface& interface) {
  if (interface.layout.type == nullptr) {
    interface.layout.type = &to_element_type(interface.typestr);
  }
  drop_idle_strides(interface.layout);
}

}  // namespace isthmus::python
