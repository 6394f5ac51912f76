// SPDX-License-Identifier: Apache-2.0
#pragma once
// Base class of the cutting resources whose blocks are freed one by one, in the order of queues. A
// chunk is kept until all of it is free and nothing uses it any more.

#include <mutex>

#include "memory/adaptors/cutting_resource.hpp"

namespace isthmus {

class keeping_resource : public cutting_resource {
 public:
  explicit keeping_resource(memory_resource& upstream)
      : cutting_resource{upstream}, slots_{make_ref<queue_slots>()} {}

  // Releases chunks that are free as a whole, then trims upstream.
  std::size_t trim(std::size_t keep) noexcept final;
  std::size_t release_unused() noexcept final;
  [[nodiscard]] std::vector<ref<event>> running() final { return slots_->running(); }

 protected:
  ~keeping_resource() override { slots_->forget_queues(); }
  [[nodiscard]] queue_slots& slots() const noexcept { return *slots_; }
  // For a block that is freed after everything that is on `behind` (null: nothing) and everything
  // that the library knows to use its bytes: copies, and recorded work. The caller's queue does not
  // wait for any of it.
  [[nodiscard]] ticket ticket_of_free(allocation& in, const void* pointer, std::size_t nbytes,
                                      queue* behind) noexcept;
  // Returns chunks to upstream that have no block in use and whose tickets have all passed; if that
  // needs memory and there is none, they stay. Returns their bytes.
  virtual std::size_t give_back_whole() noexcept = 0;
  // Pre: no references remain.
  [[nodiscard]] virtual bool has_chunks() const noexcept = 0;

 private:
  void let_go() noexcept final;

  [[nodiscard]] result<ref<queue>> own_queue();

  const ref<queue_slots> slots_;
  std::mutex own_lock_;
  ref<queue> own_queue_;  // only for fences of this resource
  int tries_to_go_ = 0;
};

}  // namespace isthmus
