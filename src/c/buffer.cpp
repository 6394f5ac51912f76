// SPDX-License-Identifier: Apache-2.0
// Buffers.

#include <algorithm>
#include <iterator>

#include "c/common.hpp"
#include "memory/base/current_resources.hpp"
#include "os/process.hpp"

using namespace isthmus;
using namespace isthmus::c;

Result<Ref<Queue>> isthmus::c::queue_or_default(isthmus_queue_t* requested) {
  if (requested != nullptr) {
    return Ref{object(requested)};
  }
  auto device = find_device("");
  ISTHMUS_TRY(device);
  return Platform::default_queue(**device);
}

namespace {

[[gnu::noinline]] Result<Ref<Buffer>> create_from_current(Queue& queue,
                                                          const BufferRequest& request) {
  const auto resource = current_resource(request.kind, queue);
  return Buffer::create(queue, request, resource.get());
}

// From `resource` or, if it is null, from the current resource or the default pool.
Result<Ref<Buffer>> create(Queue& queue, const BufferRequest& request, MemoryResource* resource) {
  return resource == nullptr && has_current_resources() ? create_from_current(queue, request)
                                                        : Buffer::create(queue, request, resource);
}

}  // namespace

isthmus_status_t isthmus_buffer_create(size_t nbytes, isthmus_kind_t kind, size_t alignment,
                                       isthmus_queue_t* queue, isthmus_resource_t* resource,
                                       isthmus_buffer_t** buffer) noexcept {
  return driver_entry(ISTHMUS_NEEDS(buffer), [&]() -> Result<void> {
    if (queue != nullptr) {  // does not count a reference to the queue
      return return_handle(create(*object(queue), {nbytes, kind, alignment}, object(resource)),
                           buffer);
    }
    auto actual_queue = queue_or_default(nullptr);
    ISTHMUS_TRY(actual_queue);
    return return_handle(create(**actual_queue, {nbytes, kind, alignment}, object(resource)),
                         buffer);
  });
}

isthmus_status_t isthmus_buffer_adopt(void* pointer, size_t nbytes, isthmus_kind_t kind,
                                      int read_only, isthmus_queue_t* queue,
                                      isthmus_owner_t raw_owner,
                                      isthmus_buffer_t** buffer) noexcept {
  Owner owner{raw_owner};
  return driver_entry(ISTHMUS_NEEDS(queue, buffer), [&]() -> Result<void> {
    return return_handle(
        Buffer::adopt(*object(queue), {pointer, nbytes, kind, read_only != 0}, std::move(owner)),
        buffer);
  });
}

isthmus_status_t isthmus_buffer_ipc_handle(isthmus_buffer_t* buffer,
                                           isthmus_ipc_handle_t* handle) noexcept {
  return driver_entry(ISTHMUS_NEEDS(buffer, handle), [&]() -> Result<void> {
    ISTHMUS_TRY(check_struct_size(*handle, "handle"));
    auto shared = object(buffer)->share();
    ISTHMUS_TRY(shared);
    std::copy(shared->location.handle.bytes.begin(), shared->location.handle.bytes.end(),
              handle->handle);
    handle->offset = shared->location.offset;
    handle->nbytes = shared->nbytes;
    return {};
  });
}

isthmus_status_t isthmus_buffer_open_ipc(const isthmus_ipc_handle_t* handle, isthmus_queue_t* queue,
                                         isthmus_buffer_t** buffer) noexcept {
  return driver_entry(ISTHMUS_NEEDS(handle, buffer), [&]() -> Result<void> {
    ISTHMUS_TRY(check_struct_size(*handle, "handle"));
    SharedBytes shared_bytes{{{}, handle->offset}, handle->nbytes};
    std::copy(std::begin(handle->handle), std::end(handle->handle),
              shared_bytes.location.handle.bytes.begin());
    auto actual_queue = queue_or_default(queue);
    ISTHMUS_TRY(actual_queue);
    return return_handle(Buffer::open(**actual_queue, shared_bytes), buffer);
  });
}

isthmus_status_t isthmus_buffer_slice(isthmus_buffer_t* base, size_t offset, size_t nbytes,
                                      isthmus_buffer_t** slice) noexcept {
  return entry(ISTHMUS_NEEDS(base, slice), [&]() -> Result<void> {
    return return_handle(object(base)->slice(offset, nbytes), slice);
  });
}

isthmus_status_t isthmus_buffer_on_queue(isthmus_buffer_t* base, isthmus_queue_t* queue,
                                         isthmus_buffer_t** view) noexcept {
  return driver_entry(ISTHMUS_NEEDS(base, queue, view), [&]() -> Result<void> {
    return return_handle(object(base)->on_queue(*object(queue)), view);
  });
}

void isthmus_buffer_retain(isthmus_buffer_t* buffer) noexcept {
  if (buffer != nullptr) {
    object(buffer)->retain();
  }
}

void isthmus_buffer_release(isthmus_buffer_t* buffer) noexcept {
  if (buffer != nullptr && !os::is_forked_child()) {
    object(buffer)->release();
  }
}

void isthmus_buffer_free(isthmus_buffer_t* buffer) noexcept {
  if (buffer != nullptr && !os::is_forked_child()) {
    object(buffer)->free();
  }
}

int isthmus_buffer_free_may_wait(isthmus_buffer_t* buffer) noexcept {
  return buffer != nullptr && !os::is_forked_child() && object(buffer)->free_may_wait() ? 1 : 0;
}

isthmus_status_t isthmus_buffer_info(const isthmus_buffer_t* buffer,
                                     isthmus_buffer_info_t* info) noexcept {
  return entry(ISTHMUS_NEEDS(buffer, info), [&]() -> Result<void> {
    ISTHMUS_TRY(check_struct_size(*info, "info"));
    const auto& source_buffer = *object(buffer);
    if (source_buffer.is_freed()) {
      return source_buffer.closed();
    }
    info->pointer = source_buffer.pointer();
    info->nbytes = source_buffer.nbytes();
    info->alignment = source_buffer.alignment();
    info->kind = source_buffer.kind();
    info->read_only = source_buffer.read_only() ? 1 : 0;
    info->is_slice = source_buffer.is_slice() ? 1 : 0;
    info->queue = handle(&source_buffer.queue());
    info->exports = source_buffer.exports();
    return {};
  });
}

void* isthmus_buffer_pointer(const isthmus_buffer_t* buffer) noexcept {
  return buffer == nullptr ? nullptr : object(buffer)->pointer();
}

namespace {

// Combines the result of a wait with the buffer's contents. A failed copy is reported even if the
// wait timed out: with an exported queue, every wait with a timeout of 0 times out.
Result<void> report_contents(Buffer& buffer, Result<void> wait_result) {
  if (wait_result || wait_result.failure().code() == ISTHMUS_ERROR_TIMEOUT) {
    ISTHMUS_TRY(buffer.check_contents());
  }
  return wait_result;
}

}  // namespace

isthmus_status_t isthmus_buffer_wait(isthmus_buffer_t* buffer, int64_t timeout_ns) noexcept {
  return entry(ISTHMUS_NEEDS(buffer), [&]() -> Result<void> {
    return report_contents(*object(buffer), object(buffer)->wait(os::deadline_after(timeout_ns)));
  });
}

isthmus_status_t isthmus_buffer_wait_for_writers(isthmus_buffer_t* buffer,
                                                 int64_t timeout_ns) noexcept {
  return entry(ISTHMUS_NEEDS(buffer), [&]() -> Result<void> {
    return report_contents(*object(buffer),
                           object(buffer)->wait_for_writers(os::deadline_after(timeout_ns)));
  });
}

int isthmus_buffer_idle(const isthmus_buffer_t* buffer) noexcept {
  return buffer != nullptr && object(buffer)->idle() ? 1 : 0;
}

size_t isthmus_buffer_watch(const isthmus_buffer_t* buffer, const unsigned char** flags,
                            size_t capacity) noexcept {
  static constexpr unsigned char k_always_set = 1;
  if (flags == nullptr || capacity == 0) {
    return 0;
  }
  if (buffer == nullptr || capacity < ISTHMUS_WATCHED) {
    *flags = &k_always_set;
    return 1;
  }
  std::ranges::copy(object(buffer)->watch(), flags);
  return ISTHMUS_WATCHED;
}

isthmus_status_t isthmus_buffer_pending(isthmus_buffer_t* buffer,
                                        isthmus_event_t** event) noexcept {
  return entry(ISTHMUS_NEEDS(buffer, event),
               [&]() -> Result<void> { return return_handle(object(buffer)->pending(), event); });
}

isthmus_status_t isthmus_buffer_export(isthmus_buffer_t* buffer, void** pointer) noexcept {
  return entry(ISTHMUS_NEEDS(buffer, pointer), [&]() -> Result<void> {
    return return_value(object(buffer)->begin_export(), pointer);
  });
}

isthmus_status_t isthmus_buffer_export_to_queue(isthmus_buffer_t* buffer, isthmus_queue_t* queue,
                                                void** pointer) noexcept {
  return driver_entry(ISTHMUS_NEEDS(buffer, pointer), [&]() -> Result<void> {
    return return_value(object(buffer)->begin_export_to_queue(object(queue)), pointer);
  });
}

void isthmus_buffer_unexport(isthmus_buffer_t* buffer) noexcept {
  if (buffer != nullptr) {
    object(buffer)->end_export();
  }
}

isthmus_status_t isthmus_buffer_disown(isthmus_buffer_t* buffer, void** pointer,
                                       isthmus_owner_t* owner) noexcept {
  return driver_entry(ISTHMUS_NEEDS(buffer, pointer, owner), [&]() -> Result<void> {
    auto* address = object(buffer)->pointer();
    auto memory_owner = object(buffer)->disown();
    ISTHMUS_TRY(memory_owner);
    *pointer = address;
    *owner = *memory_owner;
    return {};
  });
}

isthmus_status_t isthmus_buffer_record_event(isthmus_buffer_t* buffer,
                                             isthmus_event_t* event) noexcept {
  return driver_entry(ISTHMUS_NEEDS(buffer, event), [&]() -> Result<void> {
    return object(buffer)->record(Ref<isthmus::Event>{object(event)});
  });
}

isthmus_status_t isthmus_buffer_record_queue(isthmus_buffer_t* buffer,
                                             isthmus_queue_t* queue) noexcept {
  return driver_entry(ISTHMUS_NEEDS(buffer, queue),
                      [&]() -> Result<void> { return object(buffer)->record(*object(queue)); });
}
