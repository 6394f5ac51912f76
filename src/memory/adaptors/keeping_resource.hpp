#pragma once
// A cutting resource whose blocks go back one by one, in the order of queues, and that keeps its
// chunks till all of one is free and nothing uses it any more: what such have in common.

#include <mutex>

#include "memory/adaptors/cutting_resource.hpp"

namespace isthmus {

class keeping_resource : public cutting_resource {
 public:
  explicit keeping_resource(memory_resource& upstream)
      : cutting_resource{upstream}, slots_{make_ref<queue_slots>()} {}

  // Chunks that are free as a whole, then what upstream has.
  std::size_t trim(std::size_t keep) noexcept final;
  std::size_t release_unused() noexcept final;
  [[nodiscard]] std::vector<ref<event>> running() final { return slots_->running(); }

 protected:
  ~keeping_resource() override { slots_->forget_queues(); }
  [[nodiscard]] queue_slots& slots() const noexcept { return *slots_; }
  // For a block that is freed behind all that is on `behind` (null: nothing) and all that the
  // library knows to use its bytes: what it was copied by, what was recorded. The caller's queue
  // waits for none of it.
  [[nodiscard]] ticket ticket_of_free(allocation& in, const void* pointer, std::size_t nbytes,
                                      queue* behind) noexcept;
  // Chunks of which no block is out, and whose tickets have all passed, go back to upstream; where
  // that needs memory and there is none, they stay. Their bytes.
  virtual std::size_t give_back_whole() noexcept = 0;
  // Pre: nobody refers to it.
  [[nodiscard]] virtual bool has_chunks() const noexcept = 0;

 private:
  void let_go() noexcept final;

  [[nodiscard]] result<ref<queue>> own_queue();

  const ref<queue_slots> slots_;
  std::mutex own_lock_;
  ref<queue> own_queue_;  // of fences that are nobody else's
  int tries_to_go_ = 0;
};

}  // namespace isthmus
