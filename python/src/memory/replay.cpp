// SPDX-License-Identifier: Apache-2.0
// Replays the traces that isthmus.trace has read into arrays.

#include <optional>
#include <vector>

#include "core/arguments.hpp"
#include "core/errors.hpp"
#include "core/gil.hpp"
#include "core/objects.hpp"
#include "core/resource_objects.hpp"
#include "memory/bindings.hpp"

namespace isthmus::python {
namespace {

// A view of the contiguous bytes of a Python object as elements of T, which keeps the object alive.
template <class T>
class Elements {
 public:
  Elements(nb::handle object, int flags) {
    if (PyObject_GetBuffer(object.ptr(), &view_, flags) != 0) {
      raise_set();
    }
    const auto address = reinterpret_cast<std::uintptr_t>(view_.buf);
    if (const auto all = nbytes(); all % sizeof(T) != 0 || address % alignof(T) != 0) {
      PyBuffer_Release(&view_);
      raise_python(PyExc_ValueError,
                   "%zu bytes at %p are not whole, aligned elements: their size must be a multiple "
                   "of %zu, and their address of %zu",
                   all, reinterpret_cast<void*>(address), sizeof(T), alignof(T));
    }
  }
  Elements(const Elements&) = delete;
  Elements& operator=(const Elements&) = delete;
  ~Elements() { PyBuffer_Release(&view_); }

  [[nodiscard]] T* data() const noexcept { return static_cast<T*>(view_.buf); }
  [[nodiscard]] std::size_t size() const noexcept { return nbytes() / sizeof(T); }

 private:
  [[nodiscard]] std::size_t nbytes() const noexcept { return static_cast<std::size_t>(view_.len); }

  Py_buffer view_{};
};

// `queues` must outlive the result.
std::vector<isthmus_queue_t*> raw_queues(const nb::tuple& queues) {
  std::vector<isthmus_queue_t*> raw;
  for (nb::handle each : queues) {
    const auto* queue = queue_of(each);
    if (queue == nullptr) {
      raise_wrong_type(each, "queues must contain Queues");
    }
    raw.push_back(queue->raw.get());
  }
  return raw;
}

nb::tuple replay(const Resource& resource, const nb::tuple& queues, nb::handle events,
                 nb::handle samples) {
  const auto queue_handles = raw_queues(queues);
  const Elements<const isthmus_trace_event_t> all{events, PyBUF_SIMPLE};
  std::optional<Elements<isthmus_trace_sample_t>> sample_buffer;
  if (!samples.is_none()) {
    sample_buffer.emplace(samples, PyBUF_WRITABLE);
    if (sample_buffer->size() != all.size()) {
      raise_python(PyExc_ValueError,
                   "samples must have one entry for each event: %zu samples for %zu events",
                   sample_buffer->size(), all.size());
    }
  }
  auto result = sized<isthmus_replay_result_t>();
  const ExceptionScope exceptions;
  check(without_lock([&] {
    return isthmus_resource_replay(resource.raw.get(), queue_handles.data(), queue_handles.size(),
                                   all.data(), all.size(),
                                   sample_buffer ? sample_buffer->data() : nullptr, &result);
  }));
  exceptions.raise();
  return nb::make_tuple(result.ns, result.maps, result.unmaps);
}

}  // namespace

void bind_replay(nb::module_& module) {
  module.def("_replay", &replay, nb::arg("resource"), nb::arg("queues"), nb::arg("events"),
             nb::arg("samples").none(),
             nb::sig("def _replay(resource: MemoryResource, queues: tuple[Queue, ...], "
                     "events: Any, samples: Any | None) -> tuple[int, int, int]"),
             "isthmus_resource_replay; returns (ns, maps, unmaps).");
}

}  // namespace isthmus::python
