// SPDX-License-Identifier: Apache-2.0
#include "memory/adaptors/keeping_resource.hpp"

#include <algorithm>
#include <new>

namespace isthmus {

// As for a pool: chunks that work in flight still uses are released after that work; while callers
// hold blocks the resource is never destroyed.
void KeepingResource::release_now() noexcept try {
  constexpr int k_most_tries = 1000;
  const auto running = slots_->running();  // before the fence: what ends meanwhile counts
  release_unused();
  if (!has_chunks()) {
    delete this;
  } else if (!running.empty() && ++tries_to_go_ < k_most_tries) {
    reclaim_after(*this, running);
  }
} catch (const std::bad_alloc&) {
  // As with blocks in use.
}

std::size_t KeepingResource::trim(std::size_t keep) noexcept {
  const auto before = upstream().usage().held_bytes;
  if (before > keep || before == 0) {  // 0: a custom resource need not report it
    release_unused();
  }
  const auto given_back = upstream().trim(keep);
  const auto after = upstream().usage().held_bytes;
  return std::max(given_back, before - std::min(before, after));
}

std::size_t KeepingResource::release_unused() noexcept {
  slots_->fence();
  return give_back_whole();
}

Result<Ref<Queue>> KeepingResource::own_queue() {
  const std::lock_guard hold{own_lock_};
  if (!own_queue_) {
    auto made = context().create_queue(device());
    ISTHMUS_TRY(made);
    own_queue_ = *std::move(made);
  }
  return own_queue_;
}

Ticket KeepingResource::ticket_of_free(Allocation& in, const void* pointer, std::size_t nbytes,
                                       Queue* behind) noexcept try {
  auto& uses = in.uses();
  const auto begin = address(pointer) - address(in.start_of_uses());
  auto running = uses.quiet() ? std::vector<Ref<Event>>{} : uses.pending({begin, begin + nbytes});
  if (running.empty()) {
    return slots().behind(behind);
  }
  if (behind != nullptr && !behind->quiet()) {
    if (auto ended = behind->pending()) {
      running.push_back(*std::move(ended));
    } else if (ended.failure().code() != ISTHMUS_ERROR_DEVICE_LOST) {
      return Ticket::never();
    }
  }
  auto own = own_queue();
  return own && (*own)->fence(running) ? slots().fence_behind(**own) : Ticket::never();
} catch (const std::bad_alloc&) {
  return Ticket::never();  // rather lost memory than lost data
}

}  // namespace isthmus
