// SPDX-License-Identifier: Apache-2.0
// Creates buffers: new ones, buffers over adopted memory, and views of other buffers. Needs the
// interpreter's lock, which slow allocations release.

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "buffer/buffer.hpp"
#include "buffer/life_scopes.hpp"
#include "core/arguments.hpp"
#include "core/current.hpp"
#include "core/gil.hpp"
#include "core/interned.hpp"
#include "core/interruptible.hpp"
#include "core/keywords.hpp"
#include "core/owners.hpp"
#include "memory/collected_garbage.hpp"
#include "memory/default_pools.hpp"
#include "memory/resources.hpp"
#include "memory/scopes.hpp"
#include "memory/sizes.hpp"

namespace isthmus::python {
namespace {

// Allocating up to this size takes no longer than releasing the interpreter's lock, whether a pool
// or the host's allocator serves it.
constexpr std::size_t k_quick_bytes = 64 * 1024;
// Freeing this many bytes or more takes the system a while.
constexpr std::size_t k_slow_release_bytes = 4 * 1024 * 1024;

isthmus_kind_t kind_of(const isthmus_buffer_t* buffer) {
  return read_info<isthmus_buffer_info_t>(isthmus_buffer_info, buffer).kind;
}

nb::object queue_for(const BufferRequest& request, const Resource* resource) {
  const bool named = has_value(request.queue) || has_value(request.device);
  return resource != nullptr && !named ? resource->queue_object
                                       : to_queue(request.queue, request.device);
}

struct Creation {
  std::size_t nbytes;
  isthmus_kind_t kind;
  std::size_t alignment;
  const Queue& queue;
  const Resource* resource;  // null for 0 bytes, and inside a resource's allocation function

  [[nodiscard]] isthmus_resource_t* raw() const noexcept {
    return resource != nullptr ? resource->raw.get() : nullptr;
  }
  [[nodiscard]] isthmus_status_t operator()(isthmus_resource_t* resource_handle,
                                            BufferHandle& buffer) const noexcept {
    return isthmus_buffer_create(nbytes, kind, alignment, queue.raw.get(), resource_handle,
                                 buffer.out());
  }
};

// Creates the buffer with the interpreter's lock held. False if that may take longer than releasing
// the lock, or needs a driver that may wait for the lock.
bool try_create_with_lock(const Creation& create, BufferHandle& buffer) {
  const bool is_pool = create.resource != nullptr && create.resource->is_pool;
  const bool is_small_on_host = create.queue.is_on_host && create.nbytes <= k_quick_bytes;
  if (!is_pool && (create.resource != nullptr || !is_small_on_host)) {
    return false;
  }
  std::optional<ExceptionScope> exceptions;  // of functions that the resource under the pool calls
  if (is_pool && create.resource->is_pool_over) {
    exceptions.emplace();
  }
  isthmus_status_t status;
  {
    const NoWaits cached_only{!is_small_on_host};
    status = create(create.raw(), buffer);
  }
  const bool is_out_of_memory = status == ISTHMUS_ERROR_OUT_OF_MEMORY;
  if (!is_out_of_memory) {
    check(status);
  }
  return !is_out_of_memory;
}

void create_without_lock(const Creation& create, BufferHandle& buffer) {
  const Interruptible call;
  // Another thread may drop the entry of the default pool meanwhile.
  const auto resource = ResourceHandle::share(create.raw());
  call.check(without_lock([&] { return create(resource.get(), buffer); }));
}

bool free_may_wait(const BufferHandle& raw, const Queue& queue, std::size_t nbytes) noexcept {
  return !(queue.is_on_host && nbytes < k_slow_release_bytes) &&
         isthmus_buffer_free_may_wait(raw.get()) != 0;
}

}  // namespace

bool free_may_wait(const Buffer& buffer) noexcept {
  return free_may_wait(buffer.raw, queue_of_buffer(buffer), buffer.nbytes);
}

Buffer::~Buffer() {
  if (counted_by.is_valid()) {
    record_free(counted_by);
  }
  drop_memory(raw, queue_of_buffer(*this), nbytes, base.is_valid());
}

void drop_memory(BufferHandle& raw, const Queue& queue, std::size_t nbytes, bool is_view) noexcept {
  if (collected.runs && !is_view && queue.device_key == collected.device_key) {
    collected.bytes += nbytes;
  }
  const FreeWithinScope counted;
  const GilRelease released{free_may_wait(raw, queue, nbytes)};
  raw = BufferHandle{};
}

void free_buffer(const Buffer& self) noexcept {
  if (self.counted_by.is_valid()) {
    record_free(self.counted_by);
  }
  const FreeWithinScope counted;
  const GilRelease released{free_may_wait(self)};
  isthmus_buffer_free(self.raw.get());
}

BufferHandle create_buffer(std::size_t nbytes, isthmus_kind_t& kind, std::size_t alignment,
                           const Queue& queue, const Resource* resource, KindsAllowed allowed,
                           PoolUse use) {
  drain_deferred();
  nb::object chosen;
  if (resource == nullptr && resources_in_use()) {
    chosen = current_resource(kind, queue);
    resource = chosen.is_valid() ? nb::inst_ptr<Resource>(chosen) : nullptr;
  }
  // No Python code runs from here on while the interpreter's lock is held, so the entry of the
  // default pool remains valid (memory/default_pools.hpp).
  if (resource == nullptr && nbytes != 0 &&
      (use == PoolUse::arrays || !DriverAllocationScope::is_active())) {
    resource = &default_pool(kind, queue, use);
  }
  const bool may_return_other_kinds = resource != nullptr && resource->has_upstream;
  BufferHandle buffer;
  {
    const WithinScope counted;
    const Creation create{nbytes, kind, alignment, queue, resource};
    if (!try_create_with_lock(create, buffer)) {
      create_without_lock(create, buffer);
    }
  }
  if (may_return_other_kinds) {
    const auto requested_kind = std::exchange(kind, kind_of(buffer.get()));
    if (kind != requested_kind && allowed == KindsAllowed::requested_only) {
      raise_python(error_type(ISTHMUS_ERROR_OUT_OF_MEMORY),
                   "out of '%U' memory; the current resource returned '%U' memory instead, which "
                   "only isthmus.Buffer accepts",
                   kind_name(requested_kind).ptr(), kind_name(kind).ptr());
    }
  }
  return buffer;
}

void construct_buffer(Buffer* buffer, std::size_t nbytes, isthmus_kind_t kind,
                      std::size_t alignment, nb::object queue, const Resource* resource,
                      KindsAllowed allowed, PoolUse use) {
  const CreationClock clock;
  const auto& target_queue = *nb::inst_ptr<isthmus::python::Queue>(queue);
  auto memory = create_buffer(nbytes, kind, alignment, target_queue, resource, allowed, use);
  new (buffer) Buffer{std::move(memory), std::move(queue), nb::object{}, kind, nbytes, false};
  try {
    clock.record(*buffer);
  } catch (...) {
    buffer->~Buffer();  // nanobind does not destroy an object whose constructor threw
    throw;
  }
}

void construct_buffer(Buffer* buffer, const BufferRequest& request) {
  const auto* resource = resource_or_none(request.resource);
  isthmus_kind_t kind = resource != nullptr ? resource->kind : ISTHMUS_KIND_DEVICE;
  if (request.kind.is_valid()) {
    kind = to_kind(request.kind);
  }
  const auto alignment = to_alignment(request.alignment);
  nb::object queue = queue_for(request, resource);
  const auto nbytes =
      to_allocation_size(request.nbytes, "nbytes", kind, *nb::inst_ptr<python::Queue>(queue));
  construct_buffer(buffer, nbytes, kind, alignment, std::move(queue), resource, KindsAllowed::any);
}

void construct_adopted(Buffer* buffer, const Adoption& adoption, nb::object queue,
                       nb::object owner) {
  drain_deferred();
  auto memory = make_handle<BufferHandle>(isthmus_buffer_adopt, adoption.pointer, adoption.nbytes,
                                          adoption.kind, adoption.read_only ? 1 : 0,
                                          queue_of(queue)->raw.get(), keep_alive(owner));
  const auto kind = kind_of(memory.get());
  new (buffer) Buffer{std::move(memory), std::move(queue),  std::move(owner), kind,
                      adoption.nbytes,   adoption.read_only};
}

void construct_alias(Buffer* buffer, nb::handle source, nb::handle queue) {
  const auto& source_buffer = *buffer_of(source);
  const nb::object queue_object = queue.is_valid() && !queue.is_none()
                                      ? to_queue(queue, nb::handle{})
                                      : source_buffer.queue_object;
  new (buffer) Buffer{make_handle<BufferHandle>(isthmus_buffer_on_queue, source_buffer.raw.get(),
                                                queue_of(queue_object)->raw.get()),
                      queue_object,
                      nb::borrow(source),
                      source_buffer.kind,
                      source_buffer.nbytes,
                      source_buffer.read_only};
}

namespace {

// The keywords, the most frequent ones first. Created by the first call, with the interpreter's
// lock.
std::span<const Keyword<BufferRequest>> keywords() {
  static const std::array<Keyword<BufferRequest>, 6> all{{{"resource", &BufferRequest::resource},
                                                          {"queue", &BufferRequest::queue},
                                                          {"kind", &BufferRequest::kind},
                                                          {"device", &BufferRequest::device},
                                                          {"alignment", &BufferRequest::alignment},
                                                          {"nbytes", &BufferRequest::nbytes}}};
  return all;
}

nb::handle& argument_of(BufferRequest& request, PyObject* name) {
  const auto member = find_keyword(keywords(), name);
  if (member == nullptr) {
    raise_python(PyExc_TypeError, "Buffer() got an unexpected keyword argument '%U'", name);
  }
  return request.*member;
}

BufferRequest read_request(PyObject* const* arguments, std::size_t positional, PyObject* names) {
  if (positional > 1) {
    raise_python(
        PyExc_TypeError,
        "Buffer() takes one positional argument, nbytes, not %zu: pass the others by keyword",
        positional);
  }
  BufferRequest request;
  if (positional == 1) {
    request.nbytes = arguments[0];
  }
  const Py_ssize_t named = names != nullptr ? PyTuple_GET_SIZE(names) : 0;
  for (Py_ssize_t i = 0; i < named; ++i) {
    auto& argument = argument_of(request, PyTuple_GET_ITEM(names, i));
    if (argument.is_valid()) {
      raise_python(PyExc_TypeError, "Buffer() got nbytes twice");
    }
    argument = arguments[positional + static_cast<std::size_t>(i)];
  }
  if (!request.nbytes.is_valid()) {
    raise_python(PyExc_TypeError, "Buffer() is missing its argument nbytes, the size in bytes");
  }
  return request;
}

}  // namespace

PyObject* buffer_vectorcall(PyObject* type, PyObject* const* arguments, std::size_t count,
                            PyObject* names) noexcept {
  return result_of([=] {
    const auto positional = static_cast<std::size_t>(PyVectorcall_NARGS(count));
    const auto request = read_request(arguments, positional, names);
    return make_buffer(type, [&](Buffer* buffer) { construct_buffer(buffer, request); });
  });
}

}  // namespace isthmus::python
