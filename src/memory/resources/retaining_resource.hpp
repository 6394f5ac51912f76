// SPDX-License-Identifier: Apache-2.0
#pragma once
// Base class of sub-allocating resources whose blocks are freed individually, in the order of
// queues. Retains a chunk until all its blocks are free and no work uses them.

#include "core/mutex.hpp"
#include "core/thread_safety.hpp"
#include "memory/resources/suballocating_resource.hpp"

namespace isthmus {

class RetainingResource : public SuballocatingResource {
 public:
  explicit RetainingResource(MemoryResource& upstream)
      : SuballocatingResource{upstream}, fences_{make_ref<QueueFences>()} {}

  // Releases chunks that are entirely free, then trims upstream.
  std::size_t trim(std::size_t keep) noexcept final;
  std::size_t release_unused() noexcept final;
  [[nodiscard]] std::vector<Ref<Event>> running() final { return fences_->running(); }

 protected:
  ~RetainingResource() override { fences_->drop_queues(); }
  [[nodiscard]] QueueFences& fences() const noexcept { return *fences_; }
  // The ticket of a block that is freed now. It passes after all work on `after` (null: none) and
  // all work that the library knows to use the block's bytes: copies and recorded work. The
  // caller's queue does not wait for this work.
  [[nodiscard]] Ticket ticket_of_free(Allocation& chunk, const void* pointer, std::size_t nbytes,
                                      Queue* after) noexcept;
  // Releases the chunks that have no block in use and whose tickets have all passed. If this needs
  // memory and there is none, releases nothing. Returns the bytes released.
  virtual std::size_t release_free_chunks() noexcept = 0;
  // Whether any chunk is left. Called when no references to the resource remain, so without a lock.
  [[nodiscard]] virtual bool has_chunks() const noexcept = 0;

 private:
  void release_now() noexcept final;

  [[nodiscard]] Result<Ref<Queue>> own_queue();

  const Ref<QueueFences> fences_;
  Mutex own_lock_;
  Ref<Queue> own_queue_ ISTHMUS_GUARDED_BY(own_lock_);  // only for fences of this resource
  int release_attempts_ = 0;
};

}  // namespace isthmus
