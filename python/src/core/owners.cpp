// SPDX-License-Identifier: Apache-2.0
#include "core/owners.hpp"

#include <sched.h>

#include "core/gil.hpp"

namespace isthmus::python {

std::atomic<Deferred*> detail::deferred_head{nullptr};

namespace {

Gate interpreter_gate;
std::atomic<bool> call_is_pending{false};

int on_pending_call(void*) {
  call_is_pending.store(false, std::memory_order_seq_cst);
  detail::drain();
  return 0;
}

// The interpreter accepts 32 pending calls at most. If it accepts no more, the next release or
// entry drains the list.
void request_drain() noexcept {
  if (call_is_pending.exchange(true, std::memory_order_seq_cst) || !interpreter_gate.enter()) {
    return;
  }
  if (Py_AddPendingCall(&on_pending_call, nullptr) != 0) {
    call_is_pending.store(false, std::memory_order_seq_cst);
  }
  interpreter_gate.leave();
}

struct KeptObject final : Deferred {
  explicit KeptObject(nb::handle held) : object{held.inc_ref().ptr()} {}
  ~KeptObject() override { Py_DECREF(object); }
  PyObject* object;
};

}  // namespace

void defer(Deferred* deferred) noexcept {
  auto& head = detail::deferred_head;
  deferred->next = head.load(std::memory_order_relaxed);
  while (!head.compare_exchange_weak(deferred->next, deferred, std::memory_order_seq_cst)) {
  }
  request_drain();
}

isthmus_owner_t defer_owner(Deferred* deferred) noexcept {
  return {deferred, [](void* object) { defer(static_cast<Deferred*>(object)); }};
}

isthmus_owner_t keep_alive(nb::handle object) {
  if (!object.is_valid() || object.is_none()) {
    return {};
  }
  return defer_owner(new KeptObject{object});
}

// Destructors may run Python code that drains again: the nodes taken here belong to this call. An
// exception that is set must survive them.
void detail::drain() noexcept {
  auto* pending = deferred_head.exchange(nullptr, std::memory_order_seq_cst);
  if (pending == nullptr) {
    return;
  }
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  while (pending != nullptr) {
    delete std::exchange(pending, pending->next);
  }
  PyErr_Restore(type, value, trace);
}

void stop_deferring() noexcept {
  interpreter_gate.close();
  while (!interpreter_gate.empty()) {
    sched_yield();
  }
}

}  // namespace isthmus::python
