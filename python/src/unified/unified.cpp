// SPDX-License-Identifier: Apache-2.0
// The native part of UnifiedBuffer: ranges in bytes, and construction.

#include "unified/unified.hpp"

#include <vector>

#include "core/arguments.hpp"
#include "memory/resources.hpp"
#include "unified/bindings.hpp"

namespace isthmus::python {
namespace {

using MoveFunction = isthmus_status_t (*)(isthmus_unified_t*, isthmus_queue_t*, std::size_t,
                                          std::size_t, isthmus_event_t**) noexcept;

// Returns an Event unless `blocking` is true; None if it is, or if nothing has to be copied.
nb::object move(Unified& self, std::size_t begin, std::size_t end, nb::handle queue, bool blocking,
                MoveFunction call) {
  auto* const raw = raw_of(self);
  nb::object holder;
  auto* const queue_handle = raw_queue(queue, holder);
  EventHandle event;
  if (blocking && call == &isthmus_unified_to_host) {
    call_after_arrival(raw, queue_handle, begin, end, ISTHMUS_ARRIVAL_FETCH,
                       [&] { return call(raw, queue_handle, begin, end - begin, nullptr); });
    return nb::none();
  }
  call_interruptibly([&] {
    return call(raw, queue_handle, begin, end - begin, blocking ? nullptr : event.out());
  });
  return event ? wrap(std::move(event)) : nb::none();
}

nb::object to_device(Unified& self, std::size_t begin, std::size_t end, nb::handle queue,
                     bool blocking) {
  return move(self, begin, end, queue, blocking, &isthmus_unified_to_device);
}

nb::object to_host(Unified& self, std::size_t begin, std::size_t end, nb::handle queue,
                   bool blocking) {
  return move(self, begin, end, queue, blocking, &isthmus_unified_to_host);
}

isthmus_unified_info_t raw_info(Unified& self) {
  auto* const raw = raw_of(self);
  auto info = sized<isthmus_unified_info_t>();
  call_interruptibly([&] { return isthmus_unified_info(raw, &info); });
  return info;
}

std::int32_t state_of(Unified& self) { return raw_info(self).state; }

nb::list dirty_bytes(Unified& self, bool of_device) {
  auto* const raw = raw_of(self);
  std::vector<isthmus_byte_range_t> ranges(16);
  std::size_t count = 0;
  for (;;) {
    call_interruptibly([&] {
      return isthmus_unified_dirty_ranges(raw, of_device ? 1 : 0, ranges.data(), ranges.size(),
                                          &count);
    });
    if (count <= ranges.size()) {
      break;
    }
    ranges.resize(count);
  }
  nb::list result;
  for (std::size_t i = 0; i < count; ++i) {
    result.append(nb::make_tuple(ranges[i].begin, ranges[i].end));
  }
  return result;
}

const char* tracking_name(isthmus_dirty_tracking_t tracking) noexcept {
  switch (tracking) {
    case ISTHMUS_DIRTY_TRACKING_PAGES: return "pages";
    case ISTHMUS_DIRTY_TRACKING_BYTES: return "bytes";
    case ISTHMUS_DIRTY_TRACKING_HASHES: return "hashes";
    default: return "";
  }
}

nb::dict info_of(Unified& self) {
  const auto info = raw_info(self);
  nb::dict result;
  result["tracking"] = tracking_name(info.tracking);
  result["granule"] = info.granule;
  result["pinned"] = info.pinned != 0;
  result["one_memory"] = info.one_memory != 0;
  result["host_views"] = info.host_views;
  result["bytes_to_device"] = info.bytes_to_device;
  result["bytes_to_host"] = info.bytes_to_host;
  result["copies"] = info.copies;
  return result;
}

void mark(Unified& self, std::size_t begin, std::size_t end, bool device_wrote) {
  auto* const raw = raw_of(self);
  call_interruptibly([&] {
    return device_wrote ? isthmus_unified_mark_device(raw, begin, end - begin)
                        : isthmus_unified_mark_host(raw, begin, end - begin);
  });
}

void resolve(Unified& self, std::int32_t winner, std::size_t begin, std::size_t end) {
  auto* const raw = raw_of(self);
  call_after_arrival(raw, nullptr, begin, end, ISTHMUS_ARRIVAL_WORK,
                     [&] { return isthmus_unified_resolve(raw, winner, begin, end - begin); });
}

void forget(Unified& self) {
  auto* const raw = raw_of(self);
  call_after_arrival(raw, nullptr, 0, self.nbytes, ISTHMUS_ARRIVAL_BEGUN,
                     [&] { return isthmus_unified_forget(raw); });
}

void free_unified(Unified& self) {
  auto* const raw = raw_of(self);
  self.typed_array.reset();
  const GilRelease released;
  isthmus_unified_free(raw);
}

void synchronize_all(const nb::list& buffers, nb::handle queue) {
  std::vector<isthmus_unified_t*> raw;
  for (const nb::handle each : buffers) {
    raw.push_back(raw_of(require_unified(each)));
  }
  nb::object holder;
  auto* const queue_handle = raw_queue(queue, holder);
  call_interruptibly(
      [&] { return isthmus_unified_synchronize(raw.data(), raw.size(), queue_handle); });
}

nb::tuple tracking_in_force() {
  auto info = sized<isthmus_dirty_tracking_info_t>();
  call_interruptibly([&] { return isthmus_dirty_tracking_info(&info); });
  return nb::make_tuple(tracking_name(info.mechanism), info.granule, info.reason);
}

constexpr Py_ssize_t k_options = 5;

// `options`: pinned, separate, granularity, on_conflict and tracking as the library's numbers.
void init_unified(Unified* unified, nb::handle shape, nb::handle dtype, nb::handle size,
                  nb::handle queue, nb::handle device, nb::handle option_values,
                  nb::handle origin) {
  if (PyTuple_Check(shape.ptr()) == 0 || PyTuple_Check(option_values.ptr()) == 0 ||
      PyTuple_GET_SIZE(option_values.ptr()) != k_options) {
    raise_python(PyExc_TypeError, "shape must be a tuple, and options a tuple of five numbers");
  }
  const auto options = nb::borrow<nb::tuple>(option_values);
  const auto nbytes = to_size(size, "nbytes");
  nb::object queue_object = python::to_queue(queue, device);
  const auto number = [&](std::size_t i) { return nb::cast<std::int32_t>(options[i]); };
  const auto* source = resource_or_none(origin);
  auto unified_options = sized<isthmus_unified_options_t>();
  unified_options.pinned = number(0);
  unified_options.separate = number(1);
  unified_options.by_page = number(2);
  unified_options.on_conflict = number(3);
  unified_options.tracking = number(4);
  unified_options.element_bytes = nb::cast<std::size_t>(dtype.attr("itemsize"));
  unified_options.resource = source != nullptr ? source->raw.get() : nullptr;
  const WithinUsing current;  // for a call without a resource
  auto handle = make_handle<UnifiedHandle>(isthmus_unified_create, nbytes,
                                           nb::inst_ptr<python::Queue>(queue_object)->raw.get(),
                                           &unified_options);
  const auto info = read_info<isthmus_unified_info_t>(isthmus_unified_info, handle.get());
  new (unified) Unified{
      std::move(handle),   std::move(queue_object), nb::borrow(shape), nb::borrow(dtype), nbytes,
      info.one_memory != 0};
}

void bind_transfers(nb::class_<Unified>& bound) {
  bound
      .def(
          "_to_device", &to_device, nb::arg("begin"), nb::arg("end"), nb::arg("queue").none(),
          nb::arg("blocking"),
          nb::sig("def _to_device(self, begin: int, end: int, queue: Queue | None, blocking: bool) "
                  "-> Event | None"))
      .def("_to_host", &to_host, nb::arg("begin"), nb::arg("end"), nb::arg("queue").none(),
           nb::arg("blocking"),
           nb::sig("def _to_host(self, begin: int, end: int, queue: Queue | None, blocking: bool) "
                   "-> Event | None"))
      .def("_mark", &mark,
           nb::sig("def _mark(self, begin: int, end: int, device_wrote: bool) -> None"))
      .def("_resolve", &resolve,
           nb::sig("def _resolve(self, winner: int, begin: int, end: int) -> None"))
      .def("_forget", &forget);
}

void bind_properties(nb::class_<Unified>& bound) {
  bound.def("_state", &state_of)
      .def("_dirty", &dirty_bytes,
           nb::sig("def _dirty(self, of_device: bool) -> list[tuple[int, int]]"))
      .def("_info", &info_of, nb::sig("def _info(self) -> dict[str, Any]"))
      .def("_free", &free_unified)
      .def_prop_ro(
          "nbytes", [](const Unified& self) { return self.nbytes; }, "Bytes of one copy.")
      .def_prop_ro(
          "shape", [](const Unified& self) { return self.shape; },
          nb::sig("def shape(self) -> tuple[int, ...]"), "Extents, in elements.")
      .def_prop_ro(
          "dtype", [](const Unified& self) { return self.dtype; },
          nb::sig("def dtype(self) -> Any"), "NumPy's dtype of the elements.")
      .def_prop_ro(
          "_queue", [](const Unified& self) { return self.queue_object; },
          nb::sig("def _queue(self) -> Queue"));
}

}  // namespace

void bind_unified(nb::module_& module) {
  nb::class_<Unified> bound(module, "_UnifiedMemory", nb::is_weak_referenceable(),
                            nb::dynamic_attr(), nb::type_slots(unified_slots),
                            "The native part of isthmus.UnifiedBuffer.");
  types.unified = bound;
  bound.def(
      "__init__", &init_unified, nb::arg("shape").none(), nb::arg("dtype").none(),
      nb::arg("nbytes").none(), nb::arg("queue").none(), nb::arg("device").none(),
      nb::arg("options").none(), nb::arg("resource").none(),
      nb::sig("def __init__(self, shape: tuple[int, ...], dtype: Any, nbytes: int, queue: "
              "Queue | None, device: Device | str | None, options: tuple[int, ...], resource: "
              "Any) -> None"));
  bind_unified_arrays(module, bound);
  bind_transfers(bound);
  bind_properties(bound);
  module.def("_synchronize", &synchronize_all, nb::arg("buffers"), nb::arg("queue").none(),
             nb::sig("def _synchronize(buffers: Sequence[_UnifiedMemory], queue: Queue | None) -> "
                     "None"));
  module.def("_tracking_in_force", &tracking_in_force,
             nb::sig("def _tracking_in_force() -> tuple[str, int, str]"));
}

}  // namespace isthmus::python
