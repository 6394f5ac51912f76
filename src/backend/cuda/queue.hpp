#pragma once
// A stream of CUDA's. Ours do not wait for the legacy default stream nor it for them; a device's
// default queue is that stream, as in PyTorch and CuPy.
//
// A stream never waits for the host (holding_queue.hpp). CUDA could have it wait for a word of
// memory, but streams share the device's few channels: behind four that waited so before copies to
// the device no other stream's copies there went on, behind sixteen nothing did (H100, driver 580).
//
// The per-thread default stream has one handle, which means another stream on each thread. A queue
// of it is its thread's; what other threads put there, or put late, goes to the legacy default
// stream, which is the same order: that waits for all that was put to the per-thread ones before,
// and they for it.

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

// By `own_thread` (thread_queues.hpp).
struct of_one_thread {
  std::uint64_t thread;
};

class queue final : public holding_queue {
 public:
  // Takes over the stream, unless it is the legacy default one.
  queue(context& home, device& where, stream_handle handle, bool part)
      : holding_queue{home, where, part}, context_{home}, device_{where}, handle_{handle} {
    mark_ordered();
    if (handle == legacy_stream()) {
      mark_everybodys();
    }
  }
  // Adopted: the stream is its owner's.
  queue(context& home, device& where, stream_handle handle, owner keep)
      : holding_queue{home, where, false},
        keep_{std::move(keep)},
        context_{home},
        device_{where},
        handle_{handle},
        adopted_{true} {
    mark_lent();
    if (keep_) {  // else the stream may go before this queue, and no fence be put there later
      mark_ordered();
    }
  }
  // The per-thread default stream of that thread. No fence fails for its end.
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
  // Puts one operation to the driver, now or later: command() gives CUDA's code. `call` is its name
  // for messages.
  template <class Command>
  result<ref<event>> submit(const char* call, wait_list after, Command&& command,
                            bool knows_time = false);
  template <class Command>
  error put(operation& made, const char* call, wait_list after, const Command& command) const;
  [[nodiscard]] result<ref<event>> put_launch(const strided_launch& what, wait_list after);
  // The handle that stands for it on this thread.
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
  std::uint64_t thread_ = 0;  // of the per-thread default stream; 0: of any
};

}  // namespace isthmus::cuda
