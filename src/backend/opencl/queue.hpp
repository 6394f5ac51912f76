// SPDX-License-Identifier: Apache-2.0
#pragma once
// An OpenCL command queue. Thread-safe.
//
// Queues that this library creates are in order and record times. An adopted queue may be out of
// order. A barrier then precedes each operation of the library, so that these operations run one
// after the other and a fence covers all work before it.

#include "backend/context.hpp"
#include "backend/opencl/device.hpp"
#include "backend/opencl/driver.hpp"
#include "backend/opencl/native_queue.hpp"
#include "backend/opencl/submitter.hpp"
#include "backend/queue.hpp"

namespace isthmus::opencl {

struct QueueFacts {
  cl_context context = nullptr;
  cl_device_id device = nullptr;
  cl_command_queue_properties properties = 0;
};
// INVALID_ARGUMENT if `handle` is not a queue of this driver.
[[nodiscard]] Result<QueueFacts> query_queue(const Api& calls, cl_command_queue handle);

class Queue final : public isthmus::Queue, public DrainedQueue {
 public:
  // Takes ownership of one reference to `handle`, a queue that this library created.
  Queue(isthmus::Context& context, const NativeContext& native_context, Device& device,
        cl_command_queue handle, bool platform_owned)
      : isthmus::Queue{context, device, {.is_default = platform_owned}},
        submitter_{native_context, device, handle, false} {
    add_to_exit_drain();
  }
  // Takes ownership of one reference to an adopted queue.
  Queue(isthmus::Context& context, const NativeContext& native_context, Device& device,
        cl_command_queue handle, cl_command_queue_properties properties, Owner owner)
      : isthmus::Queue{context,
                       device,
                       {.is_adopted = true,
                        .is_queried_on_demand =
                            is_out_of_order(properties) && device.traits().is_host}},
        owner_{std::move(owner)},
        submitter_{native_context, device, handle, is_out_of_order(properties)} {
    add_to_exit_drain();
  }
  ~Queue() override;

  [[nodiscard]] std::uintptr_t key() const noexcept override;
  [[nodiscard]] bool is_known_idle() noexcept override { return isthmus::Queue::is_known_idle(); }
  [[nodiscard]] NativeQueue retain_native() noexcept override {
    return retain_native_queue(calls(), handle());
  }

 protected:
  [[nodiscard]] Result<Ref<Event>> do_copy(void* destination, const void* source,
                                           std::size_t nbytes, WaitList after) override;
  [[nodiscard]] Result<Ref<Event>> do_copy_2d(const Copy2dShape& shape, WaitList after) override;
  [[nodiscard]] Result<Ref<Event>> do_copy_ranges(const RangedCopy& copy, WaitList after) override;
  [[nodiscard]] Result<Ref<Event>> do_fill(void* destination, const FillPattern& pattern,
                                           std::size_t nbytes, WaitList after) override;
  [[nodiscard]] Result<Ref<Event>> do_prefetch(const void* pointer, std::size_t nbytes,
                                               bool to_host, WaitList after) override;
  [[nodiscard]] Result<Ref<Event>> do_advise(const void* pointer, std::size_t nbytes,
                                             std::uint32_t advice, WaitList after) override;
  [[nodiscard]] Result<Ref<Event>> do_fence(WaitList after) override;
  [[nodiscard]] bool can_wait_for(Event& candidate) const noexcept override;
  [[nodiscard]] Result<Ref<Event>> import(Event& foreign) override;
  [[nodiscard]] Result<Ref<Event>> order_only_event(const Ref<Event>& event,
                                                    const Ref<Event>& end) override;
  [[nodiscard]] void* native() const noexcept override { return handle(); }

 private:
  using NativeFunction = void(CL_CALLBACK*)(void* arguments);

  [[nodiscard]] static bool is_out_of_order(cl_command_queue_properties properties) noexcept {
    return (properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) != 0;
  }
  [[nodiscard]] const Api& calls() const noexcept { return submitter_.calls(); }
  [[nodiscard]] cl_command_queue handle() const noexcept { return submitter_.queue(); }
  [[nodiscard]] const DeviceTraits& device_traits() const noexcept {
    return submitter_.device().traits();
  }
  void delay_release() noexcept;
  void add_to_exit_drain() noexcept {
    if (device_traits().needs_drain_at_exit) {
      ExitDrain::instance().add(*this);
    }
  }
  [[nodiscard]] const char* copy_name() const noexcept {
    return device_traits().usm ? "clEnqueueMemcpyINTEL" : "clEnqueueSVMMemcpy";
  }
  [[nodiscard]] cl_int enqueue_copy(void* destination, const void* source, std::size_t nbytes,
                                    const CommandEvents& events) const noexcept;
  [[nodiscard]] Result<Ref<Event>> copy_rows(const Copy2dShape& shape, WaitList after);
  [[nodiscard]] Result<Ref<Event>> fill_usm(void* destination, const FillPattern& pattern,
                                            std::size_t nbytes, WaitList after);
  [[nodiscard]] Result<Ref<Event>> fill_svm(void* destination, const FillPattern& pattern,
                                            std::size_t nbytes, WaitList after);
  [[nodiscard]] Result<Ref<Event>> run_native(NativeFunction function, void* arguments,
                                              std::size_t nbytes, WaitList after);

  Owner owner_;
  Submitter submitter_;
};

}  // namespace isthmus::opencl
