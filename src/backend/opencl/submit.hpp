#pragma once
// How operations are put to the driver: the body of queue's templates, for queue.cpp and copy.cpp.

#include <array>
#include <vector>

#include "backend/opencl/errors.hpp"
#include "backend/opencl/gate.hpp"
#include "backend/opencl/queue.hpp"

namespace isthmus::opencl {

// Pre: all of `after` are events of this driver: the seam asked `knows`.
inline gate_list gates_before(wait_list after, std::vector<event_handle>& handles) {
  gate_list gates;
  handles.reserve(after.size());
  for (const auto& before : after) {
    auto& known = static_cast<driver_event&>(*before);
    handles.push_back(known.handle());
    known.add_gates(gates);
  }
  return gates;
}

// In an in-order queue only the first command has to wait, unless a failed gate is to end all of
// them, and only the first and last need events: from them the operation's times and end are known.
template <class Command>
code queue::put_in_order(std::size_t count, std::span<const event_handle> waits, bool each_waits,
                         Command& command, event_handle& first, event_handle& last) {
  for (std::size_t index = 0; index < count; ++index) {
    auto outcome =
        out_of_order_ ? calls().enqueue_barrier(handle_, 0, nullptr, nullptr) : cl::k_success;
    if (outcome == cl::k_success) {
      const bool waiting = !waits.empty() && (index == 0 || each_waits);
      auto* made = index + 1 == count ? &last : (index == 0 ? &first : nullptr);
      outcome = command(index, command_events{waiting ? static_cast<number>(waits.size()) : 0,
                                              waiting ? waits.data() : nullptr, made});
    }
    if (outcome != cl::k_success) {
      return outcome;
    }
  }
  return cl::k_success;
}

template <class Command>
result<ref<event>> queue::submit(const char* call, std::size_t count, wait_list after,
                                 Command&& command) {
  std::vector<event_handle> waits;
  auto gates = gates_before(after, waits);
  // A failed gate ends only what waits for it, so each part has to.
  const bool each_waits = !gates.empty() && ends_dependents();
  // Made first: once the driver has the operation nothing may fail.
  auto made = make_ref<operation>(context_.driver(), context_.handle(), std::move(gates));
  event_handle first = nullptr;
  event_handle last = nullptr;
  code outcome = cl::k_success;
  {
    const std::lock_guard hold{submitting_};
    outcome = put_in_order(count, waits, each_waits, command, first, last);
  }
  made->submitted(first, last);
  if (outcome != cl::k_success) {
    if (first != nullptr) {
      calls().finish(handle_);  // a later part was refused: leave nothing of it in flight
    }
    return call_failed(call, outcome);
  }
  calls().flush(handle_);  // so that whoever waits, in whatever way, does not wait for ever
  return ref<event>{made};
}

}  // namespace isthmus::opencl
