// SPDX-License-Identifier: Apache-2.0
#pragma once
// A queue for a CUDA stream. The legacy default stream and the streams that the library creates do
// not wait for each other. A device's default queue is the legacy default stream, as in PyTorch and
// CuPy. Thread-safe.
//
// A stream never waits for the host (deferring_queue.hpp). CUDA supports waits for the value of a
// word in memory, but streams share the device's few hardware channels. When four streams waited
// like that before copies to the device, no other stream's copies to the device progressed. With
// sixteen such streams, nothing progressed (H100, driver 580).
//
// The per-thread default stream has one handle, which denotes a different stream on each thread.
// Each queue for it belongs to one thread. Operations that are deferred, or that other threads
// submit, are submitted to the legacy default stream. This preserves the order: the legacy stream
// waits for all work submitted earlier to the per-thread streams, and they wait for its work.

#include <memory>

#include "backend/cuda/device.hpp"
#include "backend/cuda/event.hpp"
#include "backend/deferring_queue.hpp"

namespace isthmus::cuda {

class RangePlan;
struct StridedLaunch;

[[nodiscard]] inline CUstream legacy_stream() noexcept {
  return reinterpret_cast<CUstream>(cu::k_stream_legacy);
}

[[nodiscard]] inline CUstream per_thread_stream() noexcept {
  return reinterpret_cast<CUstream>(cu::k_stream_per_thread);
}

// The number of a thread (thread_queues.hpp).
struct OwnerThread {
  std::uint64_t thread;
};

class Queue final : public DeferringQueue {
 public:
  // Takes ownership of the stream, unless it is the legacy default stream.
  Queue(isthmus::Context& context, Device& device, CUstream handle, bool platform_owned)
      : DeferringQueue{context,
                       device,
                       {.is_default = platform_owned,
                        .is_default_stream = handle == legacy_stream(),
                        .keeps_order = true}},
        device_{device},
        handle_{handle} {}
  // Adopts a stream that belongs to its owner. Without an owner the stream may be destroyed first,
  // and later fences fail.
  Queue(isthmus::Context& context, Device& device, CUstream handle, Owner owner)
      : DeferringQueue{context,
                       device,
                       {.is_adopted = true, .keeps_order = static_cast<bool>(owner)}},
        owner_{std::move(owner)},
        device_{device},
        handle_{handle} {}
  // Uses the per-thread default stream of `owner`. Fences on this queue do not fail after that
  // thread has ended.
  Queue(isthmus::Context& context, Device& device, OwnerThread owner)
      : DeferringQueue{context, device, {.is_adopted = true, .keeps_order = true}},
        device_{device},
        handle_{per_thread_stream()},
        owner_thread_{owner.thread} {}
  ~Queue() override;

  [[nodiscard]] std::uintptr_t key() const noexcept override;

 protected:
  [[nodiscard]] Result<Ref<Event>> do_copy(void* destination, const void* source,
                                           std::size_t nbytes, WaitList after) override;
  [[nodiscard]] Result<Ref<Event>> do_copy_2d(const Copy2dShape& shape, WaitList after) override;
  [[nodiscard]] Result<Ref<Event>> do_copy_ranges(const RangedCopy& copy, WaitList after) override;
  [[nodiscard]] Result<Ref<Event>> do_copy_strided(const StridedCopy& copy,
                                                   WaitList after) override;
  [[nodiscard]] Result<Ref<Event>> do_fill(void* destination, const FillPattern& pattern,
                                           std::size_t nbytes, WaitList after) override;
  [[nodiscard]] Result<Ref<Event>> do_prefetch(const void* pointer, std::size_t nbytes,
                                               bool to_host, WaitList after) override;
  [[nodiscard]] Result<Ref<Event>> do_advise(const void* pointer, std::size_t nbytes,
                                             std::uint32_t advice, WaitList after) override;
  [[nodiscard]] Result<Ref<Event>> do_fence(WaitList after) override;
  [[nodiscard]] Result<Ref<Event>> do_mark() override;
  [[nodiscard]] Error check_not_recording() const override;
  [[nodiscard]] bool can_wait_for(Event& candidate) const noexcept override;
  [[nodiscard]] void* native() const noexcept override { return stream(); }

 private:
  // Submits one operation to the driver, now or deferred. `command` submits it and returns CUDA's
  // code; `call` is its name in messages.
  template <class Command>
  Result<Ref<Event>> submit(const char* call, WaitList after, Command&& command,
                            bool has_timing = false);
  template <class Command>
  Error submit_now(Operation& event, const char* call, WaitList after,
                   const Command& command) const;
  [[nodiscard]] Result<std::shared_ptr<RangePlan>> plan_ranges(const RangedCopy& copy) const;
  [[nodiscard]] Result<Ref<Event>> submit_launch(const StridedLaunch& launch, WaitList after);
  // The handle that denotes this queue on the calling thread.
  [[nodiscard]] CUstream stream() const noexcept;
  [[nodiscard]] CUresult enqueue_waits(WaitList after) const noexcept;
  [[nodiscard]] Error check_not_capturing() const;
  [[nodiscard]] const Api& calls() const noexcept { return device_.calls(); }

  Owner owner_;
  Device& device_;
  CUstream handle_;
  std::uint64_t owner_thread_ = 0;  // owner of a per-thread default stream; 0: none
};

}  // namespace isthmus::cuda
