// SPDX-License-Identifier: Apache-2.0
#pragma once
// A CUDA stream as a queue. Our streams do not wait for the legacy default stream nor it for them.
// A device's default queue is that stream, as in PyTorch and CuPy. Thread-safe.
//
// A stream never waits for the host (holding_queue.hpp). CUDA could make it wait for a word of
// memory, but streams share the device's few hardware channels: when four streams waited like that
// ahead of copies to the device, no other stream's copies to the device progressed; when sixteen
// did, nothing progressed (H100, driver 580).
//
// The per-thread default stream has one handle, which denotes a different stream on each thread. A
// queue of it belongs to its thread. Operations that other threads submit to it, or that are
// submitted deferred, go to the legacy default stream, which gives the same order: it waits for
// everything submitted to the per-thread streams before, and they wait for it.

#include "backend/cuda/context.hpp"
#include "backend/cuda/event.hpp"
#include "backend/cuda/strided.hpp"
#include "backend/holding_queue.hpp"

namespace isthmus::cuda {

[[nodiscard]] inline stream_handle legacy_stream() noexcept {
  return reinterpret_cast<stream_handle>(cu::k_stream_legacy);
}

[[nodiscard]] inline stream_handle per_thread_stream() noexcept {
  return reinterpret_cast<stream_handle>(cu::k_stream_of_each_thread);
}

// The number of a thread, from `own_thread` (thread_queues.hpp).
struct of_one_thread {
  std::uint64_t thread;
};

class queue final : public holding_queue {
 public:
  // Takes over the stream, unless it is the legacy default stream.
  queue(context& home, device& where, stream_handle handle, bool part)
      : holding_queue{home, where, part}, context_{home}, device_{where}, handle_{handle} {
    mark_ordered();
    if (handle == legacy_stream()) {
      mark_everybodys();
    }
  }
  // Adopts a stream that belongs to its owner.
  queue(context& home, device& where, stream_handle handle, owner keep)
      : holding_queue{home, where, false},
        keep_{std::move(keep)},
        context_{home},
        device_{where},
        handle_{handle},
        adopted_{true} {
    mark_lent();
    if (keep_) {  // otherwise the stream may be destroyed first, and later fences fail
      mark_ordered();
    }
  }
  // The per-thread default stream of that thread. Fences on it do not fail after the thread has
  // ended.
  queue(context& home, device& where, of_one_thread whose)
      : holding_queue{home, where, false},
        context_{home},
        device_{where},
        handle_{per_thread_stream()},
        adopted_{true},
        thread_{whose.thread} {
    mark_lent();
    mark_ordered();
  }
  ~queue() override;

  [[nodiscard]] std::uintptr_t key() const noexcept override;

 protected:
  [[nodiscard]] result<ref<event>> do_copy(void* destination, const void* source,
                                           std::size_t nbytes, wait_list after) override;
  [[nodiscard]] result<ref<event>> do_copy_2d(const copy_2d_shape& shape, wait_list after) override;
  [[nodiscard]] result<ref<event>> do_copy_ranges(const ranged_copy& what,
                                                  wait_list after) override;
  [[nodiscard]] result<ref<event>> do_copy_strided(const strided_copy& what,
                                                   wait_list after) override;
  [[nodiscard]] result<ref<event>> do_fill(void* destination, const fill_pattern& pattern,
                                           std::size_t nbytes, wait_list after) override;
  [[nodiscard]] result<ref<event>> do_prefetch(const void* pointer, std::size_t nbytes,
                                               bool to_host, wait_list after) override;
  [[nodiscard]] result<ref<event>> do_advise(const void* pointer, std::size_t nbytes,
                                             std::uint32_t advice, wait_list after) override;
  [[nodiscard]] result<ref<event>> do_fence(wait_list after) override;
  [[nodiscard]] result<ref<event>> do_mark() override;
  [[nodiscard]] error refuse_recorded() const override;
  [[nodiscard]] bool knows(event& candidate) const noexcept override;
  [[nodiscard]] void* native() const noexcept override { return stream(); }

 private:
  // Submits one operation to the driver, now or deferred. command() returns CUDA's code; `call`
  // names it in messages.
  template <class Command>
  result<ref<event>> submit(const char* call, wait_list after, Command&& command,
                            bool knows_time = false);
  template <class Command>
  error put(operation& made, const char* call, wait_list after, const Command& command) const;
  [[nodiscard]] result<ref<event>> put_launch(const strided_launch& what, wait_list after);
  // The handle that denotes this queue on the calling thread.
  [[nodiscard]] stream_handle stream() const noexcept;
  [[nodiscard]] code wait_for(wait_list after) const noexcept;
  [[nodiscard]] error refuse_capture() const;
  [[nodiscard]] code copy_bytes(place to, place from, std::size_t nbytes) const noexcept;
  [[nodiscard]] code copy_rows(const copy_2d_shape& shape) const noexcept;
  [[nodiscard]] code copy_pitched(const copy_2d_shape& shape) const noexcept;
  [[nodiscard]] const api& calls() const noexcept { return device_.calls(); }

  owner keep_;
  context& context_;
  device& device_;
  stream_handle handle_;
  bool adopted_ = false;
  std::uint64_t thread_ = 0;  // the owner of the per-thread default stream; 0: any thread
};

}  // namespace isthmus::cuda
