// SPDX-License-Identifier: Apache-2.0
#pragma once
// An OpenCL command queue. Thread-safe.
//
// Queues that this library creates are in order and record times. An adopted queue may be out of
// order. A barrier then precedes each operation of the library, so that these operations run one
// after the other and a fence covers all work before it.

#include <mutex>

#include "backend/opencl/context.hpp"
#include "backend/opencl/event.hpp"
#include "backend/opencl/exit_drain.hpp"
#include "backend/queue.hpp"

namespace isthmus::opencl {

struct QueueFacts {
  ContextHandle context = nullptr;
  DeviceHandle device = nullptr;
  Bits properties = 0;
};
// INVALID_ARGUMENT if `handle` is not a queue of this driver.
[[nodiscard]] Result<QueueFacts> query_queue(const Api& calls, QueueHandle handle);

// The events that a command waits for, and the address at which the driver stores the command's
// event.
struct CommandEvents {
  Number wait_count;
  const EventHandle* waits;  // null if there are none
  EventHandle* event;        // may be null
};

class Queue final : public isthmus::Queue, public DrainedAtExit {
 public:
  // Takes ownership of one reference to `handle`, a queue that this library created.
  Queue(Context& context, Device& device, QueueHandle handle, bool platform_owned)
      : isthmus::Queue{context, device, platform_owned},
        context_{context},
        device_{device},
        handle_{handle} {
    add_to_exit_drain();
  }
  // Takes ownership of one reference to an adopted queue.
  Queue(Context& context, Device& device, QueueHandle handle, Bits properties, Owner owner)
      : isthmus::Queue{context, device, false},
        owner_{std::move(owner)},
        context_{context},
        device_{device},
        handle_{handle},
        out_of_order_{(properties & cl::k_queue_out_of_order) != 0} {
    mark_exported();
    if (out_of_order_ && device_.traits().is_host) {
      mark_queried_on_demand();
    }
    add_to_exit_drain();
  }
  ~Queue() override;

  [[nodiscard]] std::uintptr_t key() const noexcept override;
  [[nodiscard]] const Api& calls() const noexcept { return context_.driver().calls(); }
  [[nodiscard]] QueueHandle handle() const noexcept { return handle_; }

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
  [[nodiscard]] void* native() const noexcept override { return handle_; }

 private:
  // Submits `count` consecutive commands to the driver as one operation. command(index, events)
  // submits one command and returns OpenCL's code; `call` is its name in messages.
  template <class Command>
  Result<Ref<Event>> submit(const char* call, std::size_t count, WaitList after, Command&& command);
  template <class Command>
  Code enqueue_in_order(std::size_t count, std::span<const EventHandle> waits, bool each_waits,
                        Command& command, OperationEvents& events);
  template <class Command>
  Code enqueue_between_barriers(std::size_t count, std::span<const EventHandle> waits,
                                std::span<const EventHandle> earlier, Command& command,
                                OperationEvents& events);

  [[nodiscard]] bool ends_dependents() const noexcept {
    return device_.traits().ends_dependents && !out_of_order_;
  }
  void delay_release() noexcept;
  void add_to_exit_drain() noexcept {
    if (device_.traits().needs_drain_at_exit) {
      ExitDrain::instance().add(*this);
    }
  }
  [[nodiscard]] const char* copy_name() const noexcept {
    return device_.traits().usm ? "clEnqueueMemcpyINTEL" : "clEnqueueSVMMemcpy";
  }
  [[nodiscard]] Code enqueue_copy(void* destination, const void* source, std::size_t nbytes,
                                  const CommandEvents& events) const noexcept;
  [[nodiscard]] Result<Ref<Event>> copy_rows(const Copy2dShape& shape, WaitList after);
  [[nodiscard]] Result<Ref<Event>> fill_usm(void* destination, const FillPattern& pattern,
                                            std::size_t nbytes, WaitList after);
  [[nodiscard]] Result<Ref<Event>> fill_svm(void* destination, const FillPattern& pattern,
                                            std::size_t nbytes, WaitList after);
  [[nodiscard]] Result<Ref<Event>> run_native(NativeFunction function, void* arguments,
                                              std::size_t nbytes, WaitList after);

  Owner owner_;
  Context& context_;
  Device& device_;
  QueueHandle handle_;
  bool out_of_order_ = false;
  // Held while the commands of one operation are submitted, so that those of two threads do not
  // interleave. The driver does not wait in these calls, and its callbacks never acquire the lock.
  std::mutex enqueue_lock_;
};

}  // namespace isthmus::opencl
