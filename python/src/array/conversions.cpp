// SPDX-License-Identifier: Apache-2.0
// Creates arrays from another array's elements, with another type, kind or device.

#include "array/bindings.hpp"
#include "array/sides.hpp"
#include "core/arguments.hpp"
#include "core/current.hpp"
#include "memory/sizes.hpp"

namespace isthmus::python {
namespace {

// Kind and queue of the new array.
struct Destination {
  isthmus_kind_t kind;
  nb::object queue;
};

Destination to_destination(const TypedArray& array, nb::handle kind, nb::handle device,
                           nb::handle queue) {
  const auto& memory = buffer_in(array);
  const bool keeps_queue = !has_value(device) && !has_value(queue);
  return {kind.is_none() ? memory.kind : to_kind(kind),
          keeps_queue ? memory.queue_object : to_queue(queue, device)};
}

bool is_at(const TypedArray& array, const Destination& destination) {
  const auto& memory = buffer_in(array);
  return memory.kind == destination.kind && memory.queue_object.is(destination.queue);
}

nb::object copy_to_destination(nb::handle object, const ElementType& type,
                               isthmus_casting_t casting, const Destination& destination) {
  const auto& array = *typed_array_of(object);
  ArrayLayout packed{{array.layout->shape}, type.item, &type};
  require_copyable(packed, *array.layout, casting);
  auto layout = size_to_allocate(destination.kind, queue_of(destination.queue)->device_object,
                                 [&] { return dense_layout(std::move(packed.shape), type); });
  nb::object array_object =
      make_fresh_array(std::move(layout), destination.kind, destination.queue);
  auto target_side = side_of(*typed_array_of(array_object), Access::write, "destination");
  auto source_side = side_of(array, Access::read, "source");
  static_cast<void>(copy_sides(target_side, source_side, casting,
                               OperationArguments{nb::handle{}, nb::handle{}, true}));
  return array_object;
}

nb::object astype(nb::handle self, nb::handle dtype, nb::handle casting, nb::handle copy,
                  nb::handle kind, nb::handle device, nb::handle queue) {
  const auto& array = require_array(self, "x");
  const auto& type = to_element_type(dtype);
  const auto casting_rule = to_casting(casting);
  const auto destination = to_destination(array, kind, device, queue);
  if (!to_flag(copy, "copy") && &type == array.layout->type && is_at(array, destination)) {
    return nb::borrow(self);
  }
  return copy_to_destination(self, type, casting_rule, destination);
}

nb::object copied(nb::handle self, nb::handle kind, nb::handle device, nb::handle queue) {
  const auto& array = require_array(self, "x");
  return copy_to_destination(self, *array.layout->type, ISTHMUS_CASTING_NO,
                             to_destination(array, kind, device, queue));
}

nb::object array_to_device(nb::handle self, nb::handle device, nb::handle kind) {
  const auto& array = require_array(self, "x");
  const bool is_queue = queue_of(device) != nullptr;
  const nb::object queue_object = is_queue ? nb::borrow(device) : to_queue(nb::none(), device);
  const Destination destination{kind.is_none() ? buffer_in(array).kind : to_kind(kind),
                                queue_object};
  const auto& own_queue = queue_of_buffer(buffer_in(array));
  const bool is_on_device = !is_queue && buffer_in(array).kind == destination.kind &&
                            own_queue.device_key == queue_of(queue_object)->device_key &&
                            own_queue.context_key == queue_of(queue_object)->context_key;
  return is_on_device || is_at(array, destination)
             ? nb::borrow(self)
             : copy_to_destination(self, *array.layout->type, ISTHMUS_CASTING_NO, destination);
}

}  // namespace

nb::object copy_of_array(nb::handle object) {
  return copied(object, nb::none(), nb::none(), nb::none());
}

void bind_array_conversions(nb::class_<TypedArray>& bound) {
  const auto none = nb::none();
  bound
      .def("astype", &astype, nb::arg("dtype").none(), nb::kw_only(),
           nb::arg("casting").none() = "unsafe", nb::arg("copy").none() = true,
           nb::arg("kind") = none, nb::arg("device") = none, nb::arg("queue") = none,
           nb::sig("def astype(self, dtype: Any, *, casting: str = 'unsafe', copy: bool = True, "
                   "kind: str | None = None, device: Device | str | None = None, queue: Queue | "
                   "None = None) -> Array"),
           "A new array of the elements as another type, in C order, with this array's kind and\n"
           "queue unless others are named. copy=False: this array itself if nothing would change.\n"
           "Waits. Raises TypeError if `casting` does not allow the conversion; see\n"
           "isthmus.copyto.")
      .def("copy", &copied, nb::kw_only(), nb::arg("kind") = none, nb::arg("device") = none,
           nb::arg("queue") = none,
           nb::sig("def copy(self, *, kind: str | None = None, device: Device | str | None = None, "
                   "queue: Queue | None = None) -> Array"),
           "A new array of the elements in C order, with this array's kind and queue unless\n"
           "others are named. Waits.")
      .def("to_device", &array_to_device, nb::arg("device").none(), nb::kw_only(),
           nb::arg("kind") = none,
           nb::sig("def to_device(self, device: Device | Queue | str, *, kind: str | None = None) "
                   "-> Array"),
           "The elements on that device, in memory of `kind` (None: this array's kind): this\n"
           "array itself if it is there already, else a copy, which waits.")
      .def("__copy__", &copy_of_array, nb::sig("def __copy__(self) -> Array"))
      .def(
          "__deepcopy__", [](nb::handle self, nb::handle) { return copy_of_array(self); },
          nb::arg("memo").none(), nb::sig("def __deepcopy__(self, memo: Any) -> Array"));
}

}  // namespace isthmus::python
