// SPDX-License-Identifier: Apache-2.0
#include "memory/adaptors/cutting_resource.hpp"

#include "core/sizes.hpp"
#include "os/process.hpp"

namespace isthmus {

result<void> cutting_resource::check_upstream(const memory_resource& upstream) {
  if (upstream.kinds() != set_of(upstream.kind())) {
    return fail(ISTHMUS_ERROR_UNSUPPORTED,
                "the upstream returns memory of several kinds, which a sub-allocating resource "
                "cannot mix: put the fallback over this resource");
  }
  return {};
}

bool cutting_resource::hold_behind(allocation& chunk, queue& behind) noexcept try {
  return static_cast<bool>(chunk.follow(behind));
} catch (const std::bad_alloc&) {
  return static_cast<bool>(wait_for(behind));
}

result<void> cutting_resource::wait_for(queue& on) noexcept try {
  return on.wait(std::nullopt);
} catch (const std::bad_alloc&) {
  return error::no_memory();
}

result<std::size_t> cutting_resource::alignment_of(std::size_t nbytes,
                                                   std::size_t alignment) const {
  if (auto bad = home().check(where(), {kind(), nbytes, alignment})) {
    return bad;
  }
  return alignment != 0 ? alignment : where().properties().base_alignment;
}

result<cutting_resource::chunk> cutting_resource::take_chunk(std::size_t nbytes,
                                                             std::size_t alignment, queue& on) {
  auto memory = allocation::create(on, {kind(), nbytes, alignment}, &upstream());
  ISTHMUS_TRY(memory);
  note_memory();
  return chunk{*std::move(memory), *this};
}

// Destruction may have to query a driver for running work, so it is deferred inside an event's
// continuation.
void cutting_resource::last_reference_gone() noexcept {
  leave_list();
  if (os::drivers_are_gone()) {
    return;
  }
  if (in_continuation()) {
    retire_later(*this);
  } else {
    let_go();
  }
}

}  // namespace isthmus
