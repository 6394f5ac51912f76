// SPDX-License-Identifier: Apache-2.0
#pragma once
// Base class of resources that sub-allocate: they divide chunks of upstream memory into blocks.
//
// A chunk is an allocation with a record. It lives until all buffers in it are destroyed and all
// work on them that the library knows of has ended. Other work that may still use it is declared
// with `record_queue_work`.

#include "memory/base/deferred_release.hpp"
#include "memory/pool/queue_fences.hpp"
#include "memory/records/cut_areas.hpp"
#include "memory/resources/caching_adaptor.hpp"

namespace isthmus {

class SuballocatingResource : public CachingAdaptor, public Releasable {
 public:
  // UNSUPPORTED for an upstream that allocates memory of several kinds, since a block has the kind
  // of its resource.
  [[nodiscard]] static Result<void> check_upstream(const MemoryResource& upstream);
  explicit SuballocatingResource(MemoryResource& upstream)
      : CachingAdaptor{upstream, {true, upstream.kinds()}} {}

  [[nodiscard]] bool suballocates() const noexcept final { return true; }
  [[nodiscard]] MemoryResource& resource_of(const void*, std::size_t) noexcept final {
    return *this;
  }
  // Not forwarded: upstream knows chunks, not blocks.
  void freed(const void*, std::size_t) noexcept final {}

 protected:
  using Chunk = CutChunk;

  // Throws std::bad_alloc. The caller holds no lock, neither here nor when the chunk is destroyed.
  [[nodiscard]] Result<Chunk> allocate_chunk(std::size_t nbytes, std::size_t alignment,
                                             Queue& queue);
  // Records that all work that is now on `queue` may use the chunk, so that the chunk is not
  // released before this work has ended. If there is no memory for the record, waits for the work
  // instead. False if the end of the work cannot be determined; the chunk must then never be
  // reused.
  [[nodiscard]] static bool record_queue_work(Allocation& chunk, Queue& queue) noexcept;
  // Waits for all work on the queue, for a caller that has no memory to record the queue.
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
