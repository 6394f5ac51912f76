// SPDX-License-Identifier: Apache-2.0
#pragma once
// A SYCL queue. Thread-safe.
//
// The library's own queues are in order. An adopted one may be out of order, which is dpctl's
// default: there a barrier precedes each operation of the library, so that these run one after the
// other and a fence covers everything before it. A SYCL queue cannot wait for the host
// (holding_queue.hpp).
//
// A barrier takes a lock of SYCL that waits for SYCL's host tasks, which may free memory: a thread
// that frees memory must not submit one.
//
// dpctl's only copy command takes one contiguous range and costs 5 us. If the device's memory is
// the host's, the host copies data in many ranges, in queue order.

#include "backend/holding_queue.hpp"
#include "backend/sycl/event.hpp"
#include "backend/sycl/held_queue.hpp"

namespace isthmus::sycl {

class queue final : public holding_queue {
 public:
  // A queue of the library's own.
  queue(context& home, device& where, owned_queue reference, bool part);
  // An adopted queue: `reference` is a copy of its owner's reference.
  queue(context& home, device& where, owned_queue reference, owner keep);
  ~queue() override;

  [[nodiscard]] std::uintptr_t key() const noexcept override { return key_; }
  [[nodiscard]] const api& calls() const noexcept { return context_.calls(); }
  [[nodiscard]] queue_reference reference() const noexcept { return held_->get(); }

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
  [[nodiscard]] void* native() const noexcept override { return reference(); }

 private:
  // Submits `count` commands, now or later, as a single operation. command(index) submits one and
  // returns its SYCL event. `call` is the name for messages.
  template <class Command>
  result<ref<event>> submit(const char* call, std::size_t count, wait_list after,
                            Command&& command);
  template <class Command>
  error put(operation& made, const char* call, std::size_t count, wait_list after,
            const Command& command) const;
  template <class Command>
  [[nodiscard]] owned_event put_all(std::size_t count, const Command& command) const;
  // Runs `work` on the host once everything before it has ended. Pre: the device's memory is the
  // host's.
  template <class Work>
  result<ref<event>> do_on_host(wait_list after, Work&& work);
  [[nodiscard]] bool stand_behind_these(wait_list after) const;
  void let_linger() noexcept;
  [[nodiscard]] owned_event put_barrier() const noexcept;
  [[nodiscard]] owned_event copy_part(void* destination, const void* source,
                                      std::size_t nbytes) const noexcept;

  owner keep_;
  context& context_;
  device& device_;
  std::shared_ptr<held_queue> held_;
  const std::uintptr_t key_;  // read once: every request for memory needs it
  bool in_order_ = true;
};

}  // namespace isthmus::sycl
