// SPDX-License-Identifier: Apache-2.0
#pragma once
// Starting copies and fills, and waiting for them. Needs the interpreter's lock, which longer
// operations and waits release.

#include <memory>
#include <optional>
#include <vector>

#include "buffer/array_view.hpp"
#include "core/owners.hpp"
#include "transfer/interfaces.hpp"

namespace isthmus::python {

// Memory of a Python object that an operation uses: a view by the buffer protocol.
class Pinned final : public Deferred {
 public:
  Pinned() = default;
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  ~Pinned() override {
    if (view.obj != nullptr) {
      PyBuffer_Release(&view);
    }
  }
  Py_buffer view{};
};

// An endpoint of a copy: a range of bytes, and the object that keeps it alive.
struct Endpoint {
  isthmus_endpoint_t raw{};
  std::size_t nbytes = 0;            // from the start, regardless of an offset
  bool direct = true;                // the library can access it without its driver
  bool submits_at_once = true;       // no submission to its queue waits for the host
  isthmus_queue_t* queue = nullptr;  // of a Buffer, borrowed
  std::unique_ptr<Pinned> memory;    // of a Python object
  BufferHandle adopted;              // of an object that exposes only its address
  nb::object owner;                  // another object to keep alive
};

// Converts a Buffer, an object with the buffer protocol, or one with an interface of
// interfaces.hpp. TypeError for other objects, ValueError for memory that is not contiguous,
// ReadOnlyError for a destination that cannot be written.
[[nodiscard]] Endpoint to_endpoint(nb::handle object, Access access, const char* role);
// An array that may have gaps, but no negative strides.
struct ArrayEndpoint {
  Endpoint endpoint;
  ArrayLayout layout;
};
// Converts an Array, or an object that describes itself as an array. Empty if the object is a
// Buffer or has no such view. ValueError for negative strides. Copies with any strides use
// array/sides.hpp.
[[nodiscard]] std::optional<ArrayEndpoint> to_array_endpoint(nb::handle object, Access access,
                                                             const char* role);
// The bounding box of the elements of an array that exposes its address.
[[nodiscard]] Endpoint foreign_endpoint(nb::handle object, const ArrayInterface& interface,
                                        Access access, const char* role);
[[nodiscard]] Endpoint buffer_endpoint(const Buffer& buffer);
// The view was requested with format and strides.
[[nodiscard]] ArrayLayout layout_of(const Py_buffer& view);
// OutOfRangeError unless [offset, offset + nbytes) lies within the endpoint.
void require_range(const Endpoint& endpoint, std::size_t nbytes, const char* role);

// The keyword arguments that operations share.
struct OperationArguments {
  ISTHMUS_EXPORTED OperationArguments(nb::handle queue_argument, nb::handle after, bool blocks);
  nb::object queue_object;  // keeps `queue` alive
  isthmus_queue_t* queue = nullptr;
  std::vector<isthmus_event_t*> after;
  std::vector<nb::object> event_objects;  // the Event objects of `after`
  bool blocking;
};

// Binds a function whose last three parameters are the keywords of OperationArguments.
template <class Scope, class Function, class... Extra>
void def_operation(Scope& scope, const char* name, Function function, const Extra&... extra) {
  scope.def(name, function, extra..., nb::arg("queue") = nb::none(),
            nb::arg("after").none() = nb::make_tuple(), nb::arg("blocking").none() = true);
}

struct Operation {
  const OperationArguments& arguments;
  std::size_t nbytes;  // number of bytes: small direct operations keep the interpreter's lock
  bool direct;         // executed by the host itself, once nothing is pending
  Endpoint* endpoints[2] = {nullptr, nullptr};
};

using Submission = isthmus_status_t (*)(void* closure, const isthmus_operation_t* operation,
                                        isthmus_event_t** event);
// Submits the operation, and waits if it is blocking. Returns None, or an Event.
[[nodiscard]] nb::object run_operation(Operation& operation, Submission submit, void* closure);
template <class Submit>
[[nodiscard]] nb::object run_operation(Operation operation, Submit submit) {
  return run_operation(
      operation,
      [](void* closure, const isthmus_operation_t* options, isthmus_event_t** event) {
        return (*static_cast<Submit*>(closure))(options, event);
      },
      &submit);
}

// The same for a copy between two endpoints.
template <class Submit>
[[nodiscard]] nb::object run_copy(const OperationArguments& arguments, std::size_t nbytes,
                                  Endpoint& destination, Endpoint& source, Submit submit) {
  return run_operation(
      {arguments, nbytes, destination.direct && source.direct, {&destination, &source}}, submit);
}

// -- operations; offsets and sizes are Python objects --------------------------------------------

struct CopyRequest {
  nb::handle destination, source, nbytes, destination_offset, source_offset;
};
[[nodiscard]] ISTHMUS_EXPORTED nb::object copy(const CopyRequest& request,
                                               const OperationArguments& arguments);

struct Copy2dRequest {
  nb::handle destination, source, width, height;
  nb::handle destination_pitch, source_pitch, destination_offset, source_offset;
};
[[nodiscard]] nb::object copy_2d(const Copy2dRequest& request, const OperationArguments& arguments);

// Copies the elements of a strided array between two endpoints; `target_layout` without its strides
// describes both sides. All elements lie within their endpoints, and no stride is negative.
[[nodiscard]] nb::object copy_strided(Endpoint& destination, Endpoint& source,
                                      const ArrayLayout& target_layout,
                                      const ArrayNumbers& source_strides,
                                      const OperationArguments& arguments);

struct RangeRequest {
  nb::handle buffer, offset, nbytes;
};
[[nodiscard]] ISTHMUS_EXPORTED nb::object fill(const RangeRequest& request, nb::handle value,
                                               const OperationArguments& arguments);
[[nodiscard]] nb::object prefetch(const RangeRequest& request, bool to_host,
                                  const OperationArguments& arguments);
[[nodiscard]] nb::object advise(const RangeRequest& request, nb::handle advice,
                                const OperationArguments& arguments);
// Copies the first bytes of `source` to the start of `destination`; waits. Both have at least
// `nbytes`.
ISTHMUS_EXPORTED void copy_endpoints(Endpoint& destination, Endpoint& source, std::size_t nbytes);
// Copies the elements, packed in C order, to an endpoint of that size; waits.
void copy_packed(const ArrayView& source, Endpoint& destination);
// The elements packed in C order in a new object of `type`, Buffer or a subclass, with memory of
// the same kind and queue; waits.
[[nodiscard]] nb::object copy_to_buffer(const ArrayView& source, nb::handle type,
                                        std::size_t alignment, PoolUse use);
// Like copy_packed, into host memory that no other code uses yet. `owner`, if valid, keeps that
// memory alive.
void copy_out(const ArrayView& source, void* destination, nb::object owner);
// A Python bytes object for `copy_out` to fill. MemoryError.
[[nodiscard]] nb::object make_bytes(std::size_t nbytes);

// True while functions submitted to queues are pending: then nothing may wait with the lock held.
[[nodiscard]] bool has_pending_functions() noexcept;

}  // namespace isthmus::python
