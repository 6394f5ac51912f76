// SPDX-License-Identifier: Apache-2.0
#pragma once
// The C++ side of Buffer and of its views. Needs the interpreter's lock unless stated otherwise.

#include "buffer/host_access.hpp"
#include "core/device_pools.hpp"
#include "core/errors.hpp"
#include "core/objects.hpp"

#if !defined(Py_tp_vectorcall)
#define Py_tp_vectorcall 82  // Python 3.14 defines it; nanobind supports it in older versions
#endif

namespace isthmus::python {

struct Buffer {
  Buffer(BufferHandle owned, nb::object queue, nb::object of_base, isthmus_kind_t of_kind,
         std::size_t size, bool is_read_only) noexcept
      : raw{std::move(owned)},
        queue_object{std::move(queue)},
        base{std::move(of_base)},
        nbytes{size},
        kind{of_kind},
        read_only{is_read_only} {}
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  BufferHandle raw;
  nb::object queue_object;
  nb::object base;  // the Buffer it is part of, or the owner of adopted memory; else not valid
  std::size_t nbytes;
  isthmus_kind_t kind;
  bool read_only;
  // The address as a Python integer, once it was requested. It never changes, and creating the
  // integer costs as much as the rest of the access. Guarded by the interpreter's lock.
  mutable nb::object address{};
  mutable nb::object counted_by{};  // valid if an `allocated` scope counts its free
};

[[nodiscard]] inline Buffer* buffer_of(nb::handle object) noexcept {
  return instance_of<Buffer>(types.buffer, object);
}
// TypeError for other objects, ValueError for a Buffer whose __init__ never ran.
[[nodiscard]] Buffer& require_buffer(nb::handle object);
[[nodiscard]] inline Queue& queue_of_buffer(const Buffer& buffer) noexcept {
  return *nb::inst_ptr<Queue>(buffer.queue_object);
}
[[nodiscard]] inline bool host_may_access(const Buffer& buffer) {
  return host_may_access(buffer.kind, queue_of_buffer(buffer));
}

// ClosedError for a freed buffer.
[[nodiscard]] isthmus_buffer_info_t info_of(const Buffer& buffer);
[[nodiscard]] nb::object address_of(const Buffer& self);
// Waits for pending work (Ctrl-C interrupts the wait) and returns the host's pointer. Must be
// followed by `end_export`. Throws the library's errors. The caller has checked that the host may
// access the memory.
[[nodiscard]] void* export_to_host(const Buffer& buffer);
void end_export(const Buffer& buffer) noexcept;
// For the buffer protocol: the host's pointer, which must be followed by `end_export`; or nullptr
// with a Python error set: BufferError if the host may not access the memory, ReadOnlyError.
[[nodiscard]] void* export_view(const Buffer& buffer, int flags) noexcept;
// The class for parts of `buffer`: Buffer, or the one of isthmus.memory.
[[nodiscard]] nb::handle view_type(const Buffer& buffer, nb::handle object) noexcept;

// A new object of `type`, Buffer or a subclass, which `construct(Buffer*)` initializes.
template <class Construct>
[[nodiscard]] nb::object make_buffer(nb::handle type, Construct construct) {
  nb::object object = nb::inst_alloc(type);
  if (!object.is_valid()) {
    raise_set();
  }
  construct(nb::inst_ptr<Buffer>(object));
  nb::inst_mark_ready(object);
  return object;
}

// The arguments of a constructor; handles that are not valid were not passed.
struct BufferRequest {
  nb::handle nbytes, kind, device, queue, alignment, resource;
};
// Constructs a new buffer at `buffer`, which nanobind has allocated.
void construct_buffer(Buffer* buffer, const BufferRequest& request);
// Whether a resource may return memory of another kind than requested. With `requested_only`, such
// memory is a USMAllocationError.
enum class KindsAllowed { any, requested_only };
// If `resource` is null, allocates from the current resource, or without one from the default pool
// for `use`.
void construct_buffer(Buffer* buffer, std::size_t nbytes, isthmus_kind_t kind,
                      std::size_t alignment, nb::object queue, const Resource* resource,
                      KindsAllowed allowed, PoolUse use = PoolUse::buffers);
// The same without a Python object. `kind` is set to the kind of the memory that was allocated.
[[nodiscard]] ISTHMUS_EXPORTED BufferHandle create_buffer(std::size_t nbytes, isthmus_kind_t& kind,
                                                          std::size_t alignment, const Queue& queue,
                                                          const Resource* resource,
                                                          KindsAllowed allowed,
                                                          PoolUse use = PoolUse::buffers);
// Implements Buffer(...): parses the arguments without a tuple and a dictionary.
PyObject* buffer_vectorcall(PyObject* type, PyObject* const* arguments, std::size_t count,
                            PyObject* names) noexcept;

// Memory of another owner, for a buffer to adopt; `owner` may be None or not valid.
struct Adoption {
  void* pointer;
  std::size_t nbytes;
  isthmus_kind_t kind;
  bool read_only;
};
void construct_adopted(Buffer* buffer, const Adoption& adoption, nb::object queue,
                       nb::object owner);
// Another view of the same memory, on `queue` if that is valid.
void construct_alias(Buffer* buffer, nb::handle source, nb::handle queue);

extern PyType_Slot buffer_slots[];

// Whether freeing or destroying the buffer, or ending an export, may wait for the device or take
// long. The caller then releases the interpreter's lock for that call.
[[nodiscard]] bool free_may_wait(const Buffer& buffer) noexcept;
// Releases the reference to memory of `nbytes` bytes on the device of `queue`. During a garbage
// collection the bytes count as freed by it, except for a view (`is_view`).
void drop_memory(BufferHandle& raw, const Queue& queue, std::size_t nbytes, bool is_view) noexcept;
// Releases the interpreter's lock if the free may take long.
void free_buffer(const Buffer& self) noexcept;

// A view of the same memory whose operations run on `queue`. TypeError for other objects.
[[nodiscard]] nb::object on_queue(nb::handle self, nb::handle queue);
// Records a use of the buffer by external work: on a Queue, or until an Event completes. TypeError
// for other objects.
void record_use(const Buffer& self, nb::handle user);

}  // namespace isthmus::python
