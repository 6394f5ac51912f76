// SPDX-License-Identifier: Apache-2.0
#pragma once
// An OpenCL command queue. Thread-safe.
//
// Queues that this library creates are in order and record times. An adopted queue may be out of
// order: there each of our operations is preceded by a barrier, so that they run one after the
// other and a fence covers everything before it.

#include <mutex>

#include "backend/opencl/context.hpp"
#include "backend/opencl/event.hpp"
#include "backend/opencl/farewell.hpp"
#include "backend/queue.hpp"

namespace isthmus::opencl {

struct queue_facts {
  context_handle home = nullptr;
  device_handle where = nullptr;
  bits properties = 0;
};
// INVALID_ARGUMENT if the driver does not know the queue.
[[nodiscard]] result<queue_facts> ask_queue(const api& calls, queue_handle handle);

// The events that a command waits for, and where the driver stores the command's own event.
struct command_events {
  number wait_count;
  const event_handle* waits;  // null if there are none
  event_handle* made;         // may be null
};

class queue final : public isthmus::queue, public in_farewell {
 public:
  // Takes over one reference to `handle`, a queue that this library created.
  queue(context& home, device& where, queue_handle handle, bool part)
      : isthmus::queue{home, where, part}, context_{home}, device_{where}, handle_{handle} {
    note_farewell();
  }
  // Takes over one reference to an adopted queue.
  queue(context& home, device& where, queue_handle handle, bits properties, owner keep)
      : isthmus::queue{home, where, false},
        keep_{std::move(keep)},
        context_{home},
        device_{where},
        handle_{handle},
        out_of_order_{(properties & cl::k_queue_out_of_order) != 0} {
    mark_lent();
    if (out_of_order_ && device_.traits().is_host) {
      mark_asked_on_demand();
    }
    note_farewell();
  }
  ~queue() override;

  [[nodiscard]] std::uintptr_t key() const noexcept override;
  [[nodiscard]] const api& calls() const noexcept { return context_.driver().calls(); }
  [[nodiscard]] queue_handle handle() const noexcept { return handle_; }

 protected:
  [[nodiscard]] result<ref<event>> do_copy(void* destination, const void* source,
                                           std::size_t nbytes, wait_list after) override;
  [[nodiscard]] result<ref<event>> do_copy_2d(const copy_2d_shape& shape, wait_list after) override;
  [[nodiscard]] result<ref<event>> do_copy_ranges(const ranged_copy& what,
                                                  wait_list after) override;
  [[nodiscard]] result<ref<event>> do_fill(void* destination, const fill_pattern& pattern,
                                           std::size_t nbytes, wait_list after) override;
  [[nodiscard]] result<ref<event>> do_prefetch(const void* pointer, std::size_t nbytes,
                                               bool to_host, wait_list after) override;
  [[nodiscard]] result<ref<event>> do_advise(const void* pointer, std::size_t nbytes,
                                             std::uint32_t advice, wait_list after) override;
  [[nodiscard]] result<ref<event>> do_fence(wait_list after) override;
  [[nodiscard]] bool knows(event& candidate) const noexcept override;
  [[nodiscard]] result<ref<event>> import(event& foreign) override;
  [[nodiscard]] result<ref<event>> end_of_known(const ref<event>& known,
                                                const ref<event>& end) override;
  [[nodiscard]] void* native() const noexcept override { return handle_; }

 private:
  // Submits `count` consecutive commands to the driver as one operation: command(index, events)
  // returns OpenCL's code. `call` names it in messages.
  template <class Command>
  result<ref<event>> submit(const char* call, std::size_t count, wait_list after,
                            Command&& command);
  template <class Command>
  code put_in_order(std::size_t count, std::span<const event_handle> waits, bool each_waits,
                    Command& command, operation_events& made);
  template <class Command>
  code put_between_barriers(std::size_t count, std::span<const event_handle> waits,
                            std::span<const event_handle> earlier, Command& command,
                            operation_events& made);

  [[nodiscard]] bool ends_dependents() const noexcept {
    return device_.traits().ends_dependents && !out_of_order_;
  }
  void let_linger() noexcept;
  void note_farewell() noexcept {
    if (device_.traits().wants_farewell) {
      farewell::only().add(*this);
    }
  }
  [[nodiscard]] const char* copy_name() const noexcept {
    return device_.traits().usm ? "clEnqueueMemcpyINTEL" : "clEnqueueSVMMemcpy";
  }
  [[nodiscard]] code copy_part(void* destination, const void* source, std::size_t nbytes,
                               const command_events& events) const noexcept;
  [[nodiscard]] result<ref<event>> copy_rows(const copy_2d_shape& shape, wait_list after);
  [[nodiscard]] result<ref<event>> fill_usm(void* destination, const fill_pattern& pattern,
                                            std::size_t nbytes, wait_list after);
  [[nodiscard]] result<ref<event>> fill_svm(void* destination, const fill_pattern& pattern,
                                            std::size_t nbytes, wait_list after);
  [[nodiscard]] result<ref<event>> run_native(native_function function, void* arguments,
                                              std::size_t nbytes, wait_list after);

  owner keep_;
  context& context_;
  device& device_;
  queue_handle handle_;
  bool out_of_order_ = false;
  // Held while the commands of one operation are submitted, so that those of two threads do not
  // interleave. The driver does not wait in these calls. Its callbacks never take the lock.
  std::mutex submitting_;
};

}  // namespace isthmus::opencl
