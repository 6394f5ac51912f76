// SPDX-License-Identifier: Apache-2.0
#include "backend/opencl/queue.hpp"

#include "backend/opencl/delayed_queue.hpp"
#include "backend/opencl/errors.hpp"
#include "backend/opencl/event.hpp"
#include "backend/opencl/gate.hpp"
#include "backend/workarounds/delayed_release.hpp"
#include "core/sizes.hpp"
#include "os/process.hpp"

namespace isthmus::opencl {

Result<QueueFacts> query_queue(const Api& calls, cl_command_queue handle) {
  QueueFacts facts;
  for (const auto outcome :
       {calls.get_queue_info(handle, CL_QUEUE_CONTEXT, sizeof facts.context, &facts.context,
                             nullptr),
        calls.get_queue_info(handle, CL_QUEUE_DEVICE, sizeof facts.device, &facts.device, nullptr),
        calls.get_queue_info(handle, CL_QUEUE_PROPERTIES, sizeof facts.properties,
                             &facts.properties, nullptr)}) {
    if (outcome != CL_SUCCESS) {
      return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                  "{} is not a cl_command_queue of this driver: clGetCommandQueueInfo: {} ({})",
                  static_cast<void*>(handle), code_name(outcome), outcome);
    }
  }
  return facts;
}

Queue::~Queue() {
  if (os::drivers_unavailable()) {
    ExitDrain::instance().remove(*this);
    return;
  }
  if (traits().is_queried_on_demand) {
    delay_release();
  }
  ExitDrain::instance().remove(*this);
  if (!traits().is_queried_on_demand) {
    calls().release_queue(handle());
  }
}

void Queue::delay_release() noexcept try {
  std::vector<Ref<Event>> running;
  add_own_unfinished(running);
  DelayedQueue::begin(
      {Ref<isthmus::Context>{&context()}, submitter_.context(), submitter_.device(), handle()},
      running);
} catch (const std::bad_alloc&) {  // the reference is leaked
}

std::uintptr_t Queue::key() const noexcept { return address(handle()); }

// Uses a barrier. By OpenCL's rules a marker with a wait list waits for nothing else, whereas a
// barrier also delays later commands, which `do_run` requires.
Result<Ref<Event>> Queue::do_fence(WaitList after) {
  return submitter_.submit(
      "clEnqueueBarrierWithWaitList", 1, after, [this](std::size_t, const CommandEvents& events) {
        return calls().enqueue_barrier(handle(), events.wait_count, events.waits, events.event);
      });
}

Result<Ref<Event>> Queue::do_prefetch(const void* pointer, std::size_t nbytes, bool to_host,
                                      WaitList after) {
  if (!device().can(ISTHMUS_CAN_PREFETCH)) {
    return isthmus::Queue::do_prefetch(pointer, nbytes, to_host, after);
  }
  // If host and device share memory, no data has to migrate. Intel's CPU runtime accepts one such
  // call per allocation and refuses later ones.
  if (device_traits().is_host) {
    return do_fence(after);
  }
  const cl_mem_migration_flags direction = to_host ? CL_MIGRATE_MEM_OBJECT_HOST : 0;
  return submitter_.submit("clEnqueueMigrateMemINTEL", 1, after,
                           [&, this](std::size_t, const CommandEvents& events) {
                             return calls().migrate(handle(), pointer, nbytes, direction,
                                                    events.wait_count, events.waits, events.event);
                           });
}

Result<Ref<Event>> Queue::do_advise(const void* pointer, std::size_t nbytes, std::uint32_t advice,
                                    WaitList after) {
  if (!device().can(ISTHMUS_CAN_ADVISE)) {
    return isthmus::Queue::do_advise(pointer, nbytes, advice, after);
  }
  return submitter_.submit("clEnqueueMemAdviseINTEL", 1, after,
                           [&, this](std::size_t, const CommandEvents& events) {
                             return calls().advise(handle(), pointer, nbytes, advice,
                                                   events.wait_count, events.waits, events.event);
                           });
}

// Commands that a failed gate may terminate must not be in an out-of-order queue, where their
// termination would crash drivers. An event of such a command is imported like an external one.
bool Queue::can_wait_for(Event& candidate) const noexcept {
  auto* event = dynamic_cast<DriverEvent*>(&candidate);
  if (event == nullptr || event->context().handle != submitter_.context().handle) {
    return false;
  }
  return submitter_.ends_dependents() || !device_traits().ends_dependents ||
         !may_be_ended_by_gate(*event);
}

Result<Ref<Event>> Queue::import(Event& foreign) {
  auto gate = Gate::create(submitter_.context(), foreign, submitter_.ends_dependents());
  if (!gate) {
    return gate.take_error();
  }
  return Ref<Event>{*std::move(gate)};
}

// An operation that depends on no gate that may still fail can only fail with a device error, so
// its event can be used unchanged.
Result<Ref<Event>> Queue::order_only_event(const Ref<Event>& event, const Ref<Event>& end) {
  GateList gates;
  static_cast<DriverEvent&>(*event).add_gates(gates);
  return gates.empty() ? Result<Ref<Event>>{event} : import(*end);
}

}  // namespace isthmus::opencl
