// SPDX-License-Identifier: Apache-2.0
// Sharing of buffers between processes.

#include <algorithm>
#include <bit>
#include <memory>

#include "buffer/buffer.hpp"
#include "core/lock_guard.hpp"
#include "core/mutex.hpp"
#include "core/sizes.hpp"
#include "memory/records/allocation_lookup.hpp"

namespace isthmus {
namespace {

// An allocation of another process that this process has opened.
struct OpenedMemory {
  Ref<Context> context;
  Device& device;
  void* base = nullptr;

  explicit OpenedMemory(Queue& queue) : context{&queue.context()}, device{queue.device()} {}
  OpenedMemory(const OpenedMemory&) = delete;
  OpenedMemory& operator=(const OpenedMemory&) = delete;
  ~OpenedMemory() {
    if (base != nullptr) {
      context->close_memory(device, base);
    }
  }
};

Error check_can_share(const Device& device) {
  if (device.can(ISTHMUS_CAN_IPC)) {
    return {};
  }
  return fail(ISTHMUS_ERROR_UNSUPPORTED,
              "{} cannot share memory with other processes: use a device with the capability "
              "\"ipc\"",
              device.properties().filter);
}

std::size_t alignment_of(const void* pointer) {
  return std::size_t{1} << std::min(std::countr_zero(address(pointer)), 30);
}

// Records the complete allocation. The driver returns the same address each time the allocation is
// opened, so all buffers over it share its uses. The lock prevents two threads that open it
// concurrently from both recording it as new.
Result<Ref<Allocation>> record_base_allocation(Queue& queue, std::unique_ptr<OpenedMemory> opened,
                                               std::size_t nbytes) {
  static Mutex record_mutex;
  auto* const base = opened->base;
  const LockGuard guard{record_mutex};
  auto existing = allocation_at(base);
  ISTHMUS_TRY(existing);
  return Allocation::adopt(
      queue, {base, nbytes, alignment_of(base), ISTHMUS_KIND_DEVICE},
      Owner{{opened.release(), [](void* pointer) { delete static_cast<OpenedMemory*>(pointer); }}},
      *std::move(existing));
}

}  // namespace

Result<SharedBytes> Buffer::share() {
  if (auto error = check_can_share(queue_->device())) {
    return error;
  }
  auto endpoint = at(0, nbytes_, false);  // keeps the memory alive during this call
  ISTHMUS_TRY(endpoint);
  if (!endpoint->memory) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "a buffer of 0 bytes has no memory to share");
  }
  ISTHMUS_TRY(wait(std::nullopt));
  ISTHMUS_TRY(check_contents());
  auto shared = queue_->context().share_memory(endpoint->pointer);
  ISTHMUS_TRY(shared);
  observe_export(endpoint->pointer);
  return SharedBytes{*shared, nbytes_};
}

Result<Ref<Buffer>> Buffer::open(Queue& queue, const SharedBytes& shared) {
  if (auto error = check_can_share(queue.device())) {
    return error;
  }
  if (shared.nbytes == 0) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "cannot open 0 bytes of shared memory: use a size greater than 0");
  }
  auto opened = std::make_unique<OpenedMemory>(queue);
  auto base = queue.context().open_memory(queue.device(), shared.location.handle);
  ISTHMUS_TRY(base);
  opened->base = *base;
  const auto facts = queue.context().query(*base);
  if (facts.device != nullptr && facts.device != &queue.device()) {
    return fail(ISTHMUS_ERROR_WRONG_CONTEXT,
                "the shared memory is on {}, not on {}: open it on its own device",
                facts.device->properties().filter, queue.device().properties().filter);
  }
  const auto available =
      facts.base == nullptr ? 0 : facts.nbytes - (address(*base) - address(facts.base));
  if (!lies_within(shared.location.offset, shared.nbytes, available)) {
    return fail(ISTHMUS_ERROR_OUT_OF_RANGE,
                "{} bytes from {} do not lie in the {} bytes that the handle opens", shared.nbytes,
                shared.location.offset, available);
  }
  auto base_allocation = record_base_allocation(queue, std::move(opened), available);
  ISTHMUS_TRY(base_allocation);
  auto* const start = static_cast<std::byte*>(*base) + shared.location.offset;
  const auto alignment = alignment_of(start);
  auto memory = Allocation::adopt(queue, {start, shared.nbytes, alignment, ISTHMUS_KIND_DEVICE},
                                  Owner{}, *std::move(base_allocation));
  ISTHMUS_TRY(memory);
  return make_ref<Buffer>(queue, *std::move(memory),
                          BufferRequest{shared.nbytes, ISTHMUS_KIND_DEVICE, alignment}, false);
}

}  // namespace isthmus
