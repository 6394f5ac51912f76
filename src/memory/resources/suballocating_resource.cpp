// SPDX-License-Identifier: Apache-2.0
#include "memory/resources/suballocating_resource.hpp"

#include "core/sizes.hpp"
#include "memory/records/allocation_creation.hpp"
#include "os/process.hpp"

namespace isthmus {

Result<void> SuballocatingResource::check_upstream(const MemoryResource& upstream) {
  if (upstream.kinds() != set_of(upstream.kind())) {
    return fail(ISTHMUS_ERROR_UNSUPPORTED,
                "the upstream returns memory of several kinds, which a sub-allocating resource "
                "cannot mix: put the fallback over this resource");
  }
  return {};
}

bool SuballocatingResource::record_queue_work(Allocation& chunk, Queue& queue) noexcept try {
  return static_cast<bool>(chunk.record_queue_work(queue));
} catch (const std::bad_alloc&) {
  return static_cast<bool>(wait_for(queue));
}

Result<void> SuballocatingResource::wait_for(Queue& queue) noexcept try {
  return queue.wait(std::nullopt);
} catch (const std::bad_alloc&) {
  return Error::no_memory();
}

Result<std::size_t> SuballocatingResource::alignment_of(std::size_t nbytes,
                                                        std::size_t alignment) const {
  if (auto bad = context().check(device(), {kind(), nbytes, alignment})) {
    return bad;
  }
  return alignment != 0 ? alignment : device().properties().base_alignment;
}

Result<SuballocatingResource::Chunk> SuballocatingResource::allocate_chunk(std::size_t nbytes,
                                                                           std::size_t alignment,
                                                                           Queue& queue) {
  auto memory = create_allocation(queue, {kind(), nbytes, alignment}, &upstream());
  ISTHMUS_TRY(memory);
  ensure_listed();
  return Chunk{*std::move(memory), *this};
}

// Destruction may query a driver for running work. Inside an event's continuation it is therefore
// deferred.
void SuballocatingResource::on_last_release() noexcept {
  unlist();
  if (os::drivers_unavailable()) {
    return;
  }
  if (in_continuation()) {
    defer_release(*this);
  } else {
    release_now();
  }
}

}  // namespace isthmus
