// SPDX-License-Identifier: Apache-2.0
#pragma once
// A SYCL queue. Thread-safe.
//
// Queues that the library creates are in order. An adopted queue may be out of order, which is
// dpctl's default. A barrier then precedes each operation of the library, so that these operations
// run one after the other and a fence covers all work before it. A SYCL queue cannot wait for the
// host (deferring_queue.hpp).
//
// Submitting a barrier acquires a lock inside the SYCL runtime and may wait for SYCL host tasks.
// Such tasks may free memory, so a thread that is freeing memory must not submit a barrier.
//
// dpctl's only copy command copies one contiguous range and costs 5 us. If the device's memory is
// the host's, the host copies data in many ranges, in queue order.

#include "backend/deferring_queue.hpp"
#include "backend/sycl/device.hpp"
#include "backend/sycl/event.hpp"
#include "backend/sycl/held_queue.hpp"

namespace isthmus::sycl {

class Queue final : public DeferringQueue {
 public:
  // A queue that the library created.
  Queue(isthmus::Context& context, const Api& calls, Device& device, OwnedQueue reference,
        bool platform_owned);
  // An adopted queue: `reference` is a copy of its owner's reference.
  Queue(isthmus::Context& context, const Api& calls, Device& device, OwnedQueue reference,
        Owner owner);
  ~Queue() override;

  [[nodiscard]] std::uintptr_t key() const noexcept override { return key_; }
  [[nodiscard]] const Api& calls() const noexcept { return calls_; }
  [[nodiscard]] QueueReference reference() const noexcept { return held_->get(); }

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
  [[nodiscard]] void* native() const noexcept override { return reference(); }

 private:
  // Submits `count` commands, now or later, as a single operation. command(index) submits one
  // command and returns its SYCL event; `call` is its name in messages.
  template <class Command>
  Result<Ref<Event>> submit(const char* call, std::size_t count, WaitList after, Command&& command);
  template <class Command>
  Error enqueue(Operation& operation, const char* call, std::size_t count, WaitList after,
                const Command& command) const;
  template <class Command>
  [[nodiscard]] OwnedEvent enqueue_all(std::size_t count, const Command& command) const;
  // Runs `work` on the host once all earlier work on the queue has completed, for devices
  // whose memory is the host's.
  template <class Work>
  Result<Ref<Event>> run_on_host(WaitList after, Work&& work);
  [[nodiscard]] bool order_next_after(WaitList after) const;
  void delay_release() noexcept;
  [[nodiscard]] OwnedEvent enqueue_barrier() const noexcept;
  [[nodiscard]] OwnedEvent enqueue_copy(void* destination, const void* source,
                                        std::size_t nbytes) const noexcept;

  Owner owner_;
  const Api& calls_;
  Device& device_;
  std::shared_ptr<HeldQueue> held_;
  const std::uintptr_t key_;  // cached, since every allocation needs it
};

}  // namespace isthmus::sycl
