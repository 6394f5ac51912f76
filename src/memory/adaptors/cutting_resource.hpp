// SPDX-License-Identifier: Apache-2.0
#pragma once
// Base class of the resources that cut their blocks out of chunks of upstream's memory.
//
// A chunk is an allocation with a record. It lives as long as the buffers in it, and as the work on
// them that the library knows of. Other work that may still use it is declared by
// `record_queue_work`.

#include "memory/adaptors/caching_adaptor.hpp"
#include "memory/cut_areas.hpp"
#include "memory/deferred_release.hpp"
#include "memory/queue_slots.hpp"

namespace isthmus {

class CuttingResource : public CachingAdaptor, public Releasable {
 public:
  // UNSUPPORTED for an upstream that allocates memory of several kinds, since a block has the kind
  // of its resource.
  [[nodiscard]] static Result<void> check_upstream(const MemoryResource& upstream);
  explicit CuttingResource(MemoryResource& upstream)
      : CachingAdaptor{upstream, {true, upstream.kinds()}} {}

  [[nodiscard]] bool suballocates() const noexcept final { return true; }
  [[nodiscard]] MemoryResource& resource_of(const void*, std::size_t) noexcept final {
    return *this;
  }
  // Upstream knows chunks, not blocks.
  void freed(const void*, std::size_t) noexcept final {}

 protected:
  using Chunk = CutChunk;

  // Throws std::bad_alloc. Pre, also when the chunk is destroyed: no lock is held.
  [[nodiscard]] Result<Chunk> allocate_chunk(std::size_t nbytes, std::size_t alignment,
                                             Queue& queue);
  // Records that all work on `queue` now may use the chunk, so that the chunk is not released
  // before this work has ended. Waits for the work if there is no memory to record it. False if its
  // end cannot be determined: then the chunk must never be reused.
  [[nodiscard]] static bool record_queue_work(Allocation& chunk, Queue& queue) noexcept;
  // For a caller that has no memory to record a queue.
  [[nodiscard]] static Result<void> wait_for(Queue& queue) noexcept;
  // The alignment of a request, or the error if the request is invalid.
  [[nodiscard]] Result<std::size_t> alignment_of(std::size_t nbytes, std::size_t alignment) const;
  // Whether the request may take the fast path.
  [[nodiscard]] bool is_plain(std::size_t alignment, const Queue* queue) const noexcept {
    return queue != nullptr && &queue->context() == &context() &&
           (alignment & (alignment - 1)) == 0 && alignment <= device().properties().base_alignment;
  }

 private:
  void on_last_release() noexcept final;
};

}  // namespace isthmus
