// SPDX-License-Identifier: Apache-2.0
#include "dpctl_block.hpp"

#include "buffer.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "sycl_objects.hpp"

namespace isthmus::python {

// Called by dpctl, with or without the interpreter's lock.
void DpctlBlock::operator()(void*) noexcept {
  const HeldGilRelease released{memory != nullptr && isthmus_buffer_free_may_wait(memory) != 0};
  if (told != nullptr) {
    isthmus_buffer_release(told);
  }
  if (memory != nullptr) {
    isthmus_buffer_release(memory);
  }
  if (theirs != nullptr) {
    isthmus_queue_release(theirs);
  }
}

DpctlBlock* dpctl_block_of(const DpctlMemory& object) noexcept {
  return object.owner != nullptr ? std::get_deleter<DpctlBlock>(*object.owner) : nullptr;
}

DpctlBlock& require_block(const DpctlMemory& object) {
  auto* found = dpctl_block_of(object);
  if (found == nullptr) {
    raise_python(PyExc_ValueError, "the memory of this object was not allocated by Isthmus");
  }
  return *found;
}

void tell_address(DpctlBlock& block) noexcept {
  const std::atomic_ref told{block.told};
  if (block.theirs == nullptr || told.load(std::memory_order_acquire) != nullptr) {
    return;
  }
  isthmus_buffer_t* view = nullptr;
  if (isthmus_buffer_on_queue(block.memory, block.theirs, &view) != ISTHMUS_OK) {
    isthmus_buffer_retain(block.memory);  // never released
    return;
  }
  isthmus_buffer_t* before = nullptr;
  if (!told.compare_exchange_strong(before, view, std::memory_order_acq_rel)) {
    isthmus_buffer_release(view);
  }
}

namespace {

void release_adopted(void* object) { delete static_cast<std::shared_ptr<void>*>(object); }

BufferHandle adopt(const DpctlBlock& block, const DpctlMemory& object) {
  const nb::object on = find_sycl_queue(object.queue);
  auto kept = std::make_unique<std::shared_ptr<void>>(block.adopted);
  const isthmus_owner_t owner{kept.release(), &release_adopted};
  BufferHandle made;
  check(isthmus_buffer_adopt(object.pointer, static_cast<std::size_t>(object.nbytes),
                             ISTHMUS_KIND_UNKNOWN, 0, queue_of(on)->raw.get(), owner, made.out()));
  return made;
}

// If several threads use it first, one result is kept and the others are released.
isthmus_buffer_t* adopted_once(DpctlBlock& block, const DpctlMemory& object) {
  const std::atomic_ref memory{block.memory};
  isthmus_buffer_t* known = memory.load(std::memory_order_acquire);
  if (known == nullptr) {
    auto made = adopt(block, object);
    if (memory.compare_exchange_strong(known, made.get(), std::memory_order_acq_rel)) {
      known = made.detach();
    }
  }
  return known;
}

struct UsedMemory {
  isthmus_buffer_t* raw;
  isthmus_buffer_info_t info{};
};

UsedMemory used_now(const DpctlMemory& object) {
  auto& block = require_block(object);
  auto* const memory = adopted_once(block, object);
  auto* const told = std::atomic_ref{block.told}.load(std::memory_order_acquire);
  UsedMemory found{told != nullptr ? told : memory};
  found.info.struct_size = sizeof found.info;
  check(isthmus_buffer_info(found.raw, &found.info));
  return found;
}

}  // namespace

Place dpctl_place(const DpctlMemory& object) {
  const auto [raw, info] = used_now(object);
  const nb::object on = wrap(QueueHandle::retained(info.queue));
  Place made;
  made.raw.buffer = raw;
  made.nbytes = info.nbytes;
  made.direct = host_reachable(info.kind);
  made.submits_at_once = nb::inst_ptr<Queue>(on)->submits_at_once;
  made.queue = info.queue;
  return made;
}

nb::object memory_of(const DpctlMemory& object) {
  const auto [raw, info] = used_now(object);
  return make_instance<Buffer>(types.memory[info.kind], BufferHandle::retained(raw),
                               wrap(QueueHandle::retained(info.queue)), nb::object{}, info.kind,
                               info.nbytes, info.read_only != 0);
}

}  // namespace isthmus::python
