// SPDX-License-Identifier: Apache-2.0
#include "memory/resources/retaining_resource.hpp"

#include <algorithm>
#include <new>

#include "core/lock_guard.hpp"

namespace isthmus {

// Destroys the resource once all its chunks are released. Chunks that work still uses are released
// after that work, as in a pool. While callers hold blocks, the resource is never destroyed.
void RetainingResource::release_now() noexcept try {
  constexpr int k_max_attempts = 1000;
  // Before the fence, so that work that ends meanwhile is included.
  const auto running = fences_->running();
  release_unused();
  if (!has_chunks()) {
    delete this;
  } else if (!running.empty() && ++release_attempts_ < k_max_attempts) {
    release_after(*this, running);
  }
} catch (const std::bad_alloc&) {
  // The resource is never destroyed, as if callers held blocks.
}

std::size_t RetainingResource::trim(std::size_t keep) noexcept {
  const auto before = upstream().usage().held_bytes;
  if (before > keep || before == 0) {  // 0: a custom resource need not report it
    release_unused();
  }
  const auto released = upstream().trim(keep);
  const auto after = upstream().usage().held_bytes;
  return std::max(released, before - std::min(before, after));
}

std::size_t RetainingResource::release_unused() noexcept {
  fences_->fence();
  return release_free_chunks();
}

Result<Ref<Queue>> RetainingResource::own_queue() {
  const LockGuard hold{own_lock_};
  if (!own_queue_) {
    auto queue = Queue::create(context(), device());
    ISTHMUS_TRY(queue);
    own_queue_ = *std::move(queue);
  }
  return own_queue_;
}

Ticket RetainingResource::ticket_of_free(Allocation& chunk, const void* pointer, std::size_t nbytes,
                                         Queue* after) noexcept try {
  auto& uses = chunk.uses();
  const auto begin = address(pointer) - address(chunk.start_of_uses());
  auto running =
      uses.is_known_idle() ? std::vector<Ref<Event>>{} : uses.pending({begin, begin + nbytes});
  if (running.empty()) {
    return fences().ticket_after(after);
  }
  if (after != nullptr && !after->is_known_idle()) {
    if (auto event = after->pending()) {
      running.push_back(*std::move(event));
    } else if (event.failure().code() != ISTHMUS_ERROR_DEVICE_LOST) {
      return Ticket::never();
    }
  }
  auto own = own_queue();
  return own && (*own)->fence(running) ? fences().fence_after(**own) : Ticket::never();
} catch (const std::bad_alloc&) {
  return Ticket::never();  // a leak rather than corrupt data
}

}  // namespace isthmus
