#include "backend/opencl/queue.hpp"

#include "backend/lingering.hpp"
#include "backend/opencl/lingering_queue.hpp"
#include "backend/opencl/submit.hpp"
#include "core/sizes.hpp"
#include "os/process.hpp"

namespace isthmus::opencl {

result<queue_facts> ask_queue(const api& calls, queue_handle handle) {
  queue_facts told;
  for (const auto outcome :
       {calls.get_queue_info(handle, cl::k_queue_context, sizeof told.home, &told.home, nullptr),
        calls.get_queue_info(handle, cl::k_queue_device, sizeof told.where, &told.where, nullptr),
        calls.get_queue_info(handle, cl::k_queue_properties, sizeof told.properties,
                             &told.properties, nullptr)}) {
    if (outcome != cl::k_success) {
      return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "not a cl_command_queue of this driver: {} ({})",
                  code_name(outcome), outcome);
    }
  }
  return told;
}

queue::~queue() {
  if (os::drivers_are_gone()) {
    farewell::only().remove(*this);
    return;
  }
  if (is_asked_on_demand()) {
    let_linger();
  }
  farewell::only().remove(*this);
  if (!is_asked_on_demand()) {
    calls().release_queue(handle_);
  }
}

void queue::let_linger() noexcept try {
  std::vector<ref<event>> running;
  add_unfinished_of_ours(running);
  lingering_queue::begin(ref<context>{&context_}, device_, handle_, running);
} catch (const std::bad_alloc&) {  // it is never given back
}

std::uintptr_t queue::key() const noexcept { return address(handle_); }

// A marker that has something to wait for waits for nothing else, by OpenCL's rules; barriers hold
// what comes behind them too, which do_run needs.
result<ref<event>> queue::do_fence(wait_list after) {
  return submit(
      "clEnqueueBarrierWithWaitList", 1, after, [this](std::size_t, const command_events& events) {
        return calls().enqueue_barrier(handle_, events.wait_count, events.waits, events.made);
      });
}

result<ref<event>> queue::do_prefetch(const void* pointer, std::size_t nbytes, bool to_host,
                                      wait_list after) {
  if (!device_.can(ISTHMUS_CAN_PREFETCH)) {
    return isthmus::queue::do_prefetch(pointer, nbytes, to_host, after);
  }
  // Where host and device are one there is nothing to move. Intel's CPU runtime would take one such
  // call an allocation and refuse the next.
  if (device_.traits().is_host) {
    return do_fence(after);
  }
  const bits direction = to_host ? cl::k_migrate_to_host : 0;
  return submit("clEnqueueMigrateMemINTEL", 1, after,
                [&, this](std::size_t, const command_events& events) {
                  return calls().migrate(handle_, pointer, nbytes, direction, events.wait_count,
                                         events.waits, events.made);
                });
}

result<ref<event>> queue::do_advise(const void* pointer, std::size_t nbytes, std::uint32_t advice,
                                    wait_list after) {
  if (!device_.can(ISTHMUS_CAN_ADVISE)) {
    return isthmus::queue::do_advise(pointer, nbytes, advice, after);
  }
  return submit("clEnqueueMemAdviseINTEL", 1, after,
                [&, this](std::size_t, const command_events& events) {
                  return calls().advise(handle_, pointer, nbytes, advice, events.wait_count,
                                        events.waits, events.made);
                });
}

// What may be ended by a failed gate must not stand in an out-of-order queue, where drivers crash
// on it: such an event comes in as a foreign one.
bool queue::knows(event& candidate) const noexcept {
  auto* known = dynamic_cast<driver_event*>(&candidate);
  if (known == nullptr || known->home() != context_.handle()) {
    return false;
  }
  return ends_dependents() || !device_.traits().ends_dependents || !known->may_be_ended();
}

result<ref<event>> queue::import(event& foreign) {
  auto made = gate::create(context_.driver(), context_.handle(), foreign, ends_dependents());
  if (!made) {
    return made.take_error();
  }
  return ref<event>{*std::move(made)};
}

// What stands behind no gate that may fail can itself fail by the device's fault alone.
result<ref<event>> queue::end_of_known(const ref<event>& known, const ref<event>& end) {
  gate_list gates;
  static_cast<driver_event&>(*known).add_gates(gates);
  return gates.empty() ? result<ref<event>>{known} : import(*end);
}

}  // namespace isthmus::opencl
