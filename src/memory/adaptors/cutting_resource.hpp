#pragma once
// A resource that cuts its blocks out of chunks of upstream's memory: what such have in common.
//
// A chunk is an allocation with a record, which lives as long as buffers that lie in it and as work
// on them that the library knows of. What else may still use it is told by `hold_behind`.

#include "memory/adaptors/caching_adaptor.hpp"
#include "memory/cut_areas.hpp"
#include "memory/queue_slots.hpp"
#include "memory/reaper.hpp"

namespace isthmus {

class cutting_resource : public caching_adaptor, public reclaimable {
 public:
  // UNSUPPORTED for an upstream that gives memory of several kinds, since a
  // block has the kind of its resource.
  [[nodiscard]] static result<void> check_upstream(const memory_resource& upstream);
  explicit cutting_resource(memory_resource& upstream)
      : caching_adaptor{upstream, {true, upstream.kinds()}} {}

  [[nodiscard]] bool cuts() const noexcept final { return true; }
  [[nodiscard]] memory_resource& giver_of(const void*, std::size_t) noexcept final { return *this; }
  // Upstream has chunks, not blocks.
  void freed(const void*, std::size_t) noexcept final {}

 protected:
  using chunk = cut_chunk;

  // Pre of this, and of the end of what it gives: no lock is held. Throws std::bad_alloc.
  [[nodiscard]] result<chunk> take_chunk(std::size_t nbytes, std::size_t alignment, queue& on);
  // All that is on `behind` now may use the chunk, which goes back no sooner than it has ended;
  // waits for it where there is no memory to note it. False where nobody can tell: then nobody may
  // ever have the chunk.
  [[nodiscard]] static bool hold_behind(allocation& chunk, queue& behind) noexcept;
  // For who has no memory to note a queue.
  [[nodiscard]] static result<void> wait_for(queue& on) noexcept;
  // The alignment that a request has, or what is wrong with it.
  [[nodiscard]] result<std::size_t> alignment_of(std::size_t nbytes, std::size_t alignment) const;
  // Whether the request may go the short way.
  [[nodiscard]] bool is_plain(std::size_t alignment, const queue* on) const noexcept {
    return on != nullptr && &on->home() == &home() && (alignment & (alignment - 1)) == 0 &&
           alignment <= where().properties().base_alignment;
  }

 private:
  void last_reference_gone() noexcept final;
};

}  // namespace isthmus
