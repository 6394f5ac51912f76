// SPDX-License-Identifier: Apache-2.0
#include "array_prototype.hpp"

#include <cstring>

#include "arguments.hpp"
#include "array_sides.hpp"
#include "cuda_streams.hpp"
#include "current.hpp"

namespace isthmus::python {
namespace {

// The stride of an extent of 1 or less has no meaning: it becomes the element size.
void drop_idle_strides(ArrayLayout& layout) {
  for (std::size_t i = 0; i < layout.shape.size(); ++i) {
    layout.strides[i] = layout.shape[i] > 1 ? layout.strides[i] : layout.item;
  }
}

// NumPy has one stride for each extent; `strides` of other libraries may be anything.
std::optional<ArrayLayout> layout_told_by(nb::handle like, const ElementType& type) {
  const nb::object strides = nb::getattr(like, "strides", nb::none());
  if (PyTuple_Check(strides.ptr()) == 0) {
    return {};
  }
  ArrayLayout made{to_shape(nb::object(like.attr("shape"))), {}, type.item, &type};
  for (nb::handle each : nb::borrow<nb::tuple>(strides)) {
    made.strides.push_back(to_int64(each, "stride"));
  }
  return made.strides.size() == made.shape.size() ? std::optional{std::move(made)} : std::nullopt;
}

Model model_of_numpys(nb::handle given) {
  const bool tells = nb::hasattr(given, "shape") && nb::hasattr(given, "dtype");
  const nb::object like = tells ? nb::borrow(given) : numpy_array_of(given);
  const auto& type = to_element_type(nb::object(like.attr("dtype")));
  Model made{like.attr("shape"), nullptr, &type};
  made.lies = layout_told_by(like, type);
  return made;
}

// A queue on a CUDA stream would keep the prototype, which owns the stream, alive. New memory has
// no earlier work to be ordered after.
nb::object queue_beside(const nb::object& told) {
  const auto& on = *queue_of(told);
  return cuda_number_of(on) < 0 ? told : to_queue(nb::handle{}, on.device_object);
}

Model model_of_interface(ToldInterface told) {
  require_type(told);
  Model made{{}, nullptr, told.layout.type, queue_beside(told.queue)};
  const auto kind = told.what.pointer == nullptr
                        ? ISTHMUS_KIND_UNKNOWN
                        : kind_on(*queue_of(told.queue), told.what.pointer);
  made.kind = kind != ISTHMUS_KIND_UNKNOWN ? kind : made.kind;
  made.lies = std::move(told.layout);
  return made;
}

// NumPy arrays are the most common ones and have no interface of a device.
bool is_numpys_array(nb::handle prototype) noexcept {
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
  if (PyType_Check(prototype.ptr()) == 0 && !is_numpys_array(prototype)) {
    if (auto told = read_interface(prototype, Access::read)) {
      return model_of_interface(*std::move(told));
    }
  }
  return model_of_numpys(prototype);
}

void require_type(ToldInterface& told) {
  if (told.layout.type == nullptr) {
    told.layout.type = &to_element_type(told.typestr);
  }
  drop_idle_strides(told.layout);
}

}  // namespace isthmus::python
