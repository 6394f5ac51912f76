// SPDX-License-Identifier: Apache-2.0
#include "dpctl/block.hpp"

#include "buffer/buffer.hpp"
#include "core/errors.hpp"
#include "core/gil.hpp"
#include "core/sycl_objects.hpp"

namespace isthmus::python {

// Called by dpctl, with or without the interpreter's lock.
void DpctlBlock::operator()(void*) noexcept {
  const HeldGilRelease released{memory != nullptr && isthmus_buffer_free_may_wait(memory) != 0};
  if (exported_view != nullptr) {
    isthmus_buffer_release(exported_view);
  }
  if (memory != nullptr) {
    isthmus_buffer_release(memory);
  }
  if (sycl_queue != nullptr) {
    isthmus_queue_release(sycl_queue);
  }
}

const std::shared_ptr<void>* owner_of(DpctlMemory& object) noexcept {
  // Threads without the interpreter's lock may set it (`expose_and_get_opaque_ptr`).
  if (auto* const owner = std::atomic_ref{object.owner}.load(std::memory_order_acquire)) {
    return owner;
  }
  if (auto* const own = as_isthmus(object)) {
    return own->first_owner;
  }
  if (object.reference == nullptr || !is_dpctl_memory(object.reference)) {
    return nullptr;
  }
  auto* const referred = as_isthmus(as_dpctl(object.reference));
  return referred != nullptr ? referred->first_owner : nullptr;
}

DpctlBlock* dpctl_block_of(DpctlMemory& object) noexcept {
  const auto* const owner = owner_of(object);
  return owner != nullptr ? std::get_deleter<DpctlBlock>(*owner) : nullptr;
}

DpctlBlock& require_block(DpctlMemory& object) {
  auto* found = dpctl_block_of(object);
  if (found == nullptr) {
    raise_python(PyExc_ValueError,
                 "the memory at %p was neither allocated by Isthmus nor adopted from dpctl",
                 object.pointer);
  }
  return *found;
}

void expose_address(DpctlBlock& block) noexcept {
  const std::atomic_ref exported_view{block.exported_view};
  if (block.sycl_queue == nullptr || exported_view.load(std::memory_order_acquire) != nullptr) {
    return;
  }
  isthmus_buffer_t* view = nullptr;
  if (isthmus_buffer_on_queue(block.memory, block.sycl_queue, &view) != ISTHMUS_OK) {
    isthmus_buffer_retain(block.memory);  // never released
    return;
  }
  isthmus_buffer_t* expected = nullptr;
  if (!exported_view.compare_exchange_strong(expected, view, std::memory_order_acq_rel)) {
    isthmus_buffer_release(view);
  }
}

namespace {

void release_adopted(void* object) { delete static_cast<std::shared_ptr<void>*>(object); }

BufferHandle adopt(const DpctlBlock& block, const DpctlMemory& object) {
  const nb::object queue_object = find_sycl_queue(object.queue);
  auto owner_copy = std::make_unique<std::shared_ptr<void>>(block.adopted);
  const isthmus_owner_t owner{owner_copy.release(), &release_adopted};
  return make_handle<BufferHandle>(isthmus_buffer_adopt, object.pointer,
                                   static_cast<std::size_t>(object.nbytes), ISTHMUS_KIND_UNKNOWN, 0,
                                   queue_of(queue_object)->raw.get(), owner);
}

// If several threads adopt the memory at once, one result is stored and the others are released.
isthmus_buffer_t* adopt_once(DpctlBlock& block, const DpctlMemory& object) {
  const std::atomic_ref memory{block.memory};
  isthmus_buffer_t* buffer = memory.load(std::memory_order_acquire);
  if (buffer == nullptr) {
    auto adopted = adopt(block, object);
    if (memory.compare_exchange_strong(buffer, adopted.get(), std::memory_order_acq_rel)) {
      buffer = adopted.detach();
    }
  }
  return buffer;
}

struct CurrentMemory {
  isthmus_buffer_t* raw;
  isthmus_buffer_info_t info = sized<isthmus_buffer_info_t>();
};

CurrentMemory current_memory(DpctlMemory& object) {
  auto& block = require_block(object);
  auto* const memory = adopt_once(block, object);
  auto* const exported_view = std::atomic_ref{block.exported_view}.load(std::memory_order_acquire);
  CurrentMemory found{exported_view != nullptr ? exported_view : memory};
  check(isthmus_buffer_info(found.raw, &found.info));
  return found;
}

}  // namespace

Endpoint dpctl_endpoint(DpctlMemory& object) {
  const auto [raw, info] = current_memory(object);
  const nb::object queue_object = wrap(QueueHandle::share(info.queue));
  Endpoint endpoint;
  endpoint.raw.buffer = raw;
  endpoint.nbytes = info.nbytes;
  endpoint.direct = host_reachable(info.kind);
  endpoint.submits_at_once = nb::inst_ptr<Queue>(queue_object)->submits_at_once;
  endpoint.queue = info.queue;
  return endpoint;
}

nb::object memory_of(DpctlMemory& object) {
  const auto [raw, info] = current_memory(object);
  return make_instance<Buffer>(types.memory[info.kind], BufferHandle::share(raw),
                               wrap(QueueHandle::share(info.queue)), nb::object{}, info.kind,
                               info.nbytes, info.read_only != 0);
}

}  // namespace isthmus::python
