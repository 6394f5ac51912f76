// SPDX-License-Identifier: Apache-2.0
#pragma once
// Base class of the cutting resources whose blocks are freed one by one, in the order of queues. A
// chunk is retained until all of it is free and no work uses it.

#include <mutex>

#include "memory/adaptors/cutting_resource.hpp"

namespace isthmus {

class KeepingResource : public CuttingResource {
 public:
  explicit KeepingResource(MemoryResource& upstream)
      : CuttingResource{upstream}, slots_{make_ref<QueueSlots>()} {}

  // Releases chunks that are free as a whole, then trims upstream.
  std::size_t trim(std::size_t keep) noexcept final;
  std::size_t release_unused() noexcept final;
  [[nodiscard]] std::vector<Ref<Event>> running() final { return slots_->running(); }

 protected:
  ~KeepingResource() override { slots_->drop_queues(); }
  [[nodiscard]] QueueSlots& slots() const noexcept { return *slots_; }
  // The ticket of a block that is freed after all work on `after` (null: none) and all work that
  // the library knows to use its bytes: copies, and recorded work. The caller's queue does not wait
  // for any of it.
  [[nodiscard]] Ticket ticket_of_free(Allocation& chunk, const void* pointer, std::size_t nbytes,
                                      Queue* after) noexcept;
  // Returns chunks to upstream that have no block in use and whose tickets have all passed; if that
  // needs memory and there is none, they stay. Returns their bytes.
  virtual std::size_t release_free_chunks() noexcept = 0;
  // Pre: no references remain.
  [[nodiscard]] virtual bool has_chunks() const noexcept = 0;

 private:
  void release_now() noexcept final;

  [[nodiscard]] Result<Ref<Queue>> own_queue();

  const Ref<QueueSlots> slots_;
  std::mutex own_lock_;
  Ref<Queue> own_queue_;  // only for fences of this resource
  int release_attempts_ = 0;
};

}  // namespace isthmus
